//! What administration lists.

use crate::sql::{OptionalExtension, Row};
use chips_protocol::{HarnessId, PersonId, SpaceId, Timestamp, WorkspaceId};

use super::{Admin, AdminError, Listed};
use crate::engine::rows;

/// A harness of whose questions outside any space nobody is told: its owner can't sign in any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// The harness.
    pub harness_id: HarnessId,
    /// What people call it.
    pub name: String,
    /// Its owner.
    pub owner: PersonId,
    /// What people call them.
    pub owner_name: String,
}

/// A workspace that nobody owns any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownerless {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// How many people it has who can sign in.
    pub people: u64,
}

impl Admin {
    /// The workspaces that were not erased and that nobody owns who can sign in, in the order in which they were made.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn ownerless(&mut self) -> Result<Vec<Ownerless>, AdminError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT w.workspace_id, (SELECT count(*) FROM persons p WHERE p.ws_no = w.no AND p.disabled_at IS NULL)
             FROM workspaces w WHERE NOT EXISTS (
                 SELECT 1 FROM persons p WHERE p.ws_no = w.no AND p.disabled_at IS NULL AND p.owner <> 0)
             ORDER BY w.no",
        )?;
        let found = statement.query_map([], |row| {
            let people: i64 = row.get(1)?;
            Ok(Ownerless { workspace_id: WorkspaceId::from_bytes(row.get(0)?), people: people.unsigned_abs() })
        })?;
        let found = found.collect::<crate::sql::Result<Vec<_>>>()?;
        let ended = rows::ended_workspaces(&self.connection)?;
        Ok(found.into_iter().filter(|one| !ended.contains(&one.workspace_id.to_string())).collect())
    }

    /// The workspace that nobody owns but this person, if there is one.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn owned_by_them_alone(&mut self, person: PersonId) -> Result<Option<WorkspaceId>, AdminError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT w.workspace_id FROM persons p JOIN workspaces w ON w.no = p.ws_no
             WHERE p.person_id = ?1 AND p.owner <> 0 AND p.disabled_at IS NULL AND NOT EXISTS (
                 SELECT 1 FROM persons o WHERE o.ws_no = p.ws_no AND o.no <> p.no AND o.owner <> 0 AND o.disabled_at IS NULL)",
        )?;
        let found = statement.query_row([person.to_bytes()], |row| row.get(0)).optional()?;
        Ok(found.map(WorkspaceId::from_bytes))
    }

    /// The harnesses that are owned by somebody disabled, in the order in which they were added; `owner` names one alone.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn unheard(&mut self, owner: Option<PersonId>) -> Result<Vec<Unheard>, AdminError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT h.harness_id, h.name, p.person_id, p.name FROM harnesses h JOIN persons p ON p.no = h.owner_no
             WHERE h.disabled_at IS NULL AND p.disabled_at IS NOT NULL AND (?1 IS NULL OR p.person_id = ?1)
             ORDER BY h.ws_no, h.no",
        )?;
        let found = statement.query_map([owner.map(PersonId::to_bytes)], |row| {
            Ok(Unheard {
                harness_id: HarnessId::from_bytes(row.get(0)?),
                name: row.get(1)?,
                owner: PersonId::from_bytes(row.get(2)?),
                owner_name: row.get(3)?,
            })
        })?;
        Ok(found.collect::<crate::sql::Result<_>>()?)
    }

    /// All workspaces.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn workspaces(&mut self) -> Result<Vec<Listed>, AdminError> {
        let sql = "SELECT workspace_id, workspace_id, name, created_at, NULL,
                          (SELECT count(*) FROM persons WHERE ws_no = w.no),
                          (SELECT count(*) FROM harnesses WHERE ws_no = w.no)
                   FROM workspaces w WHERE ?1 IS NULL ORDER BY no";
        let mut all = self.list(
            sql,
            None,
            |id| WorkspaceId::from_bytes(id).to_string(),
            |row| {
                let (persons, harnesses): (i64, i64) = (row.get(5)?, row.get(6)?);
                Ok(format!("{}, {}", counted(persons, "person", "persons"), counted(harnesses, "harness", "harnesses")))
            },
        )?;
        let ended = rows::ended_workspaces(&self.connection)?;
        for listed in &mut all {
            listed.disabled = ended.contains(&listed.id);
        }
        Ok(all)
    }

    /// The persons of one workspace, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn persons(&mut self, workspace: Option<WorkspaceId>) -> Result<Vec<Listed>, AdminError> {
        let sql = "SELECT p.person_id, w.workspace_id, p.name, p.created_at, p.disabled_at, p.owner
                   FROM persons p JOIN workspaces w ON w.no = p.ws_no
                   WHERE ?1 IS NULL OR w.workspace_id = ?1 ORDER BY p.ws_no, p.no";
        self.list(
            sql,
            workspace,
            |id| PersonId::from_bytes(id).to_string(),
            |row| Ok(if row.get(5)? { "owner".to_owned() } else { String::new() }),
        )
    }

    /// The harnesses of one workspace, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn harnesses(&mut self, workspace: Option<WorkspaceId>) -> Result<Vec<Listed>, AdminError> {
        let sql = "SELECT h.harness_id, w.workspace_id, h.name, h.created_at, h.disabled_at, h.open_limit, h.hour_limit, p.person_id
                   FROM harnesses h JOIN workspaces w ON w.no = h.ws_no LEFT JOIN persons p ON p.no = h.owner_no
                   WHERE ?1 IS NULL OR w.workspace_id = ?1 ORDER BY h.ws_no, h.no";
        self.list(
            sql,
            workspace,
            |id| HarnessId::from_bytes(id).to_string(),
            |row| {
                let limit = |limit: Option<i64>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
                let budget = format!("open {}, hour {}", limit(row.get(5)?), limit(row.get(6)?));
                Ok(match row.get::<_, Option<[u8; 16]>>(7)?.map(PersonId::from_bytes) {
                    Some(owner) => format!("{budget}, owner {owner}"),
                    None => budget,
                })
            },
        )
    }

    /// The spaces of one workspace, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn spaces(&mut self, workspace: Option<WorkspaceId>) -> Result<Vec<Listed>, AdminError> {
        let sql = "SELECT s.space_id, w.workspace_id, s.name, s.created_at, NULL, s.closed,
                          (SELECT count(*) FROM members WHERE space_no = s.no), s.private
                   FROM spaces s JOIN workspaces w ON w.no = s.ws_no
                   WHERE ?1 IS NULL OR w.workspace_id = ?1 ORDER BY s.ws_no, s.no";
        self.list(
            sql,
            workspace,
            |id| SpaceId::from_bytes(id).to_string(),
            |row| {
                let (closed, members): (bool, i64) = (row.get(5)?, row.get(6)?);
                let who = if closed {
                    format!("closed, {}", counted(members, "member", "members"))
                } else {
                    "open".to_owned()
                };
                Ok(if row.get(7)? { format!("{who}, private") } else { who })
            },
        )
    }

    /// Rows that begin with the id, the workspace's id, the name, when it was made and when it was disabled.
    fn list(
        &mut self,
        sql: &str,
        workspace: Option<WorkspaceId>,
        id: impl Fn([u8; 16]) -> String,
        note: impl Fn(&Row<'_>) -> crate::sql::Result<String>,
    ) -> Result<Vec<Listed>, AdminError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([workspace.map(WorkspaceId::to_bytes)], |row| {
            Ok(Listed {
                id: id(row.get(0)?),
                workspace_id: WorkspaceId::from_bytes(row.get(1)?),
                name: row.get(2)?,
                created_at: Timestamp::from_ms(row.get(3)?),
                disabled: row.get::<_, Option<i64>>(4)?.is_some(),
                note: note(row)?,
            })
        })?;
        Ok(rows.collect::<crate::sql::Result<_>>()?)
    }
}

fn counted(count: i64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
