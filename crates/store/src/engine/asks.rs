//! Lists of asks: filtered, in one of two orders, page by page.
//!
//! What is filtered by is looked at here and not in SQL, so that one step looks through a bounded number of rows
//! whatever the filter: no step keeps a connection, or an old view of the database, for long.

use std::collections::{HashMap, HashSet};

use crate::sql::{Connection, OptionalExtension, Result, Statement};
use chips_core::{Access, Who};
use chips_protocol::Event;
use chips_protocol::api::{AskState, AsksPage};

use super::{events, rows, view};
use crate::query::Cursor;
use crate::{AskFilter, AsksQuery, Clock, Identity};

/// Rows that one step looks through at most.
const ROWS: usize = 20_000;
/// Bytes of JSON that one step reads for their text, about.
const TEXT_BYTES: usize = 8 << 20;

/// A list in the making.
pub(crate) struct List {
    viewer: Identity,
    query: AsksQuery,
    /// The text to look for, in lower case.
    text: Option<String>,
    clock: Clock,
    page: AsksPage,
    /// Where the next step begins.
    from: Option<Cursor>,
    /// The place of the last ask of the page.
    last: Option<Cursor>,
    done: bool,
}

/// A row that is looked at.
struct Candidate {
    pos: i64,
    tier: i64,
    deadline: i64,
    state: i64,
    run_no: i64,
    harness_no: i64,
    space_no: Option<i64>,
}

/// The filters as numbers.
struct Wanted {
    ws_no: i64,
    /// For a person: the spaces they see. A harness sees its own asks.
    spaces: Option<HashSet<i64>>,
    space_no: Option<i64>,
    run_no: Option<i64>,
    /// Each of them must be the ask's.
    harnesses: Vec<i64>,
    states: fn(i64, i64) -> bool,
    state: i64,
}

impl List {
    /// A list as of now; `head` is the last event that everybody has been told of.
    pub(crate) fn new(viewer: Identity, query: AsksQuery, clock: Clock, head: u64) -> Self {
        let text = query.text.as_deref().map(str::to_lowercase).filter(|text| !text.is_empty());
        let page = AsksPage { asks: Vec::new(), head, next: None };
        let from = query.before.clone();
        Self { viewer, query, text, clock, page, from, last: None, done: false }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn page(self) -> AsksPage {
        self.page
    }

    fn by_urgency(&self) -> bool {
        matches!(self.query.filter, AskFilter::Open | AskFilter::State(AskState::Open))
    }

    /// Looks through some more rows.
    pub(crate) fn step(mut self, connection: &Connection) -> Result<Self> {
        let Some(wanted) = self.wanted(connection)? else {
            self.done = true;
            return Ok(self);
        };
        let mut labelled = HashMap::new();
        let (mut looked, mut read) = (0, 0);
        let mut rows = if self.by_urgency() { by_urgency(connection)? } else { newest_first(connection, &wanted)? };
        let mut found = rows.query(wanted.parameters(self.by_urgency(), self.from.as_ref()))?;
        while let Some(row) = found.next()? {
            if looked == ROWS || read >= TEXT_BYTES {
                return Ok(self);
            }
            looked += 1;
            let candidate = candidate(&row)?;
            let place = self.cursor(&candidate);
            self.from = Some(place.clone());
            if !wanted.takes(&candidate) || !self.has_label(connection, &candidate, &mut labelled)? {
                continue;
            }
            if let Some(text) = &self.text {
                let (says, bytes) = says(connection, candidate.pos, text)?;
                read += bytes;
                if !says {
                    continue;
                }
            }
            if self.page.asks.len() >= self.query.limit.max(1) {
                self.page.next = self.last.as_ref().map(ToString::to_string);
                break;
            }
            self.page.asks.push(view::ask_at(connection, candidate.pos, self.clock.now())?);
            self.last = Some(place);
        }
        self.done = true;
        Ok(self)
    }

    fn cursor(&self, candidate: &Candidate) -> Cursor {
        let seq = rows::seq(candidate.pos);
        if self.by_urgency() {
            let rank = u8::try_from(1 + candidate.tier).unwrap_or(u8::MAX);
            Cursor { rank, deadline_ms: candidate.deadline, seq }
        } else {
            Cursor { rank: 0, deadline_ms: 0, seq }
        }
    }

    /// The filters as numbers; nothing where one of them names something that is foreign.
    fn wanted(&self, connection: &Connection) -> Result<Option<Wanted>> {
        let Some(ws_no) = rows::workspace_no(connection, self.viewer.sender.workspace_id)? else { return Ok(None) };
        let number = |sql: &str, id: [u8; 16]| -> Result<Option<i64>> {
            connection.prepare_cached(sql)?.query_row((id, ws_no), |row| row.get(0)).optional()
        };
        let space_no = match self.query.space_id {
            None => None,
            Some(space) => {
                match number("SELECT no FROM spaces WHERE space_id = ?1 AND ws_no = ?2", space.to_bytes())? {
                    None => return Ok(None),
                    found => found,
                }
            }
        };
        let run_no = match self.query.run_id {
            None => None,
            Some(run) => match number("SELECT no FROM runs WHERE run_id = ?1 AND ws_no = ?2", run.to_bytes())? {
                None => return Ok(None),
                found => found,
            },
        };
        let own = match self.viewer.sender.who {
            Who::Harness(harness) => Some(harness),
            Who::Person(_) => None,
        };
        let mut harnesses = Vec::new();
        for harness in own.into_iter().chain(self.query.harness_id) {
            match number("SELECT no FROM harnesses WHERE harness_id = ?1 AND ws_no = ?2", harness.to_bytes())? {
                Some(harness_no) => harnesses.push(harness_no),
                None => return Ok(None),
            }
        }
        let spaces = match &self.viewer.access {
            Access::Harness(_) => None,
            Access::Person(..) => Some(events::seen_spaces(connection, &self.viewer, ws_no)?),
        };
        let (states, state): (fn(i64, i64) -> bool, i64) = match self.query.filter {
            AskFilter::All => (|_, _| true, 0),
            AskFilter::Open => (|found, open| found == open, rows::state_code(AskState::Open)),
            AskFilter::Closed => (|found, open| found != open, rows::state_code(AskState::Open)),
            AskFilter::State(state) => (|found, wanted| found == wanted, rows::state_code(state)),
        };
        Ok(Some(Wanted { ws_no, spaces, space_no, run_no, harnesses, states, state }))
    }

    fn has_label(
        &self,
        connection: &Connection,
        candidate: &Candidate,
        known: &mut HashMap<i64, bool>,
    ) -> Result<bool> {
        let Some((key, value)) = &self.query.label else { return Ok(true) };
        if let Some(has) = known.get(&candidate.run_no) {
            return Ok(*has);
        }
        let has = connection
            .prepare_cached("SELECT 1 FROM run_labels WHERE ws_no = ?1 AND run_no = ?2 AND key = ?3 AND value = ?4")?
            .exists((rows::ws_no(candidate.pos), candidate.run_no, key, value))?;
        known.insert(candidate.run_no, has);
        Ok(has)
    }
}

impl Wanted {
    /// What the statement for the rows takes: where to begin, and the narrowest index that there is.
    fn parameters(&self, by_urgency: bool, from: Option<&Cursor>) -> [Option<i64>; 4] {
        let place = from.map(|cursor| rows::pos(self.ws_no, cursor.seq));
        if by_urgency {
            let (tier, deadline) = from.map_or((-1, 0), |cursor| (i64::from(cursor.rank) - 1, cursor.deadline_ms));
            return [Some(self.ws_no), Some(tier), Some(deadline), Some(place.unwrap_or_default())];
        }
        let (first, end) = (rows::pos(self.ws_no, 0), rows::pos(self.ws_no + 1, 0));
        let number = self.run_no.or(self.harnesses.first().copied());
        [Some(self.ws_no), number, Some(first), Some(place.unwrap_or(end))]
    }

    fn takes(&self, candidate: &Candidate) -> bool {
        (self.states)(candidate.state, self.state)
            && self.run_no.is_none_or(|wanted| candidate.run_no == wanted)
            && self.space_no.is_none_or(|wanted| candidate.space_no == Some(wanted))
            && self.harnesses.iter().all(|wanted| candidate.harness_no == *wanted)
            && match (&self.spaces, candidate.space_no) {
                (Some(seen), Some(space)) => seen.contains(&space),
                _ => true,
            }
    }
}

fn candidate(row: &crate::sql::Row<'_>) -> Result<Candidate> {
    Ok(Candidate {
        pos: row.get(0)?,
        tier: row.get(1)?,
        deadline: row.get(2)?,
        state: row.get(3)?,
        run_no: row.get(4)?,
        harness_no: row.get(5)?,
        space_no: row.get(6)?,
    })
}

/// The rows of what is open.
fn by_urgency(connection: &Connection) -> Result<Statement<'_>> {
    connection.prepare_cached(
        "SELECT pos, tier, deadline, state, run_no, harness_no, space_no FROM asks INDEXED BY asks_open
         WHERE ws_no = ?1 AND state = 0 AND (tier, deadline, pos) > (?2, ?3, ?4) ORDER BY tier, deadline, pos",
    )
}

/// The rows by `seq`, the newest first.
fn newest_first<'a>(connection: &'a Connection, wanted: &Wanted) -> Result<Statement<'a>> {
    let from = match (wanted.run_no, wanted.harnesses.first()) {
        (Some(_), _) => "INDEXED BY asks_by_run WHERE run_no = ?2",
        (None, Some(_)) => "INDEXED BY asks_by_harness WHERE harness_no = ?2",
        // Else the planner takes an index on the workspace, and sorts all of it.
        (None, None) => "NOT INDEXED WHERE ?2 IS NULL",
    };
    connection.prepare_cached(&format!(
        "SELECT pos, tier, deadline, state, run_no, harness_no, space_no FROM asks {from}
         AND pos > ?3 AND pos < ?4 AND ws_no = ?1 ORDER BY pos DESC"
    ))
}

/// Whether the text stands in a prompt, an option's label, the answer's free text or the run's title, and how many
/// bytes were read to find out.
fn says(connection: &Connection, pos: i64, text: &str) -> Result<(bool, usize)> {
    let mut statement = connection.prepare_cached(
        "SELECT r.title, q.body, c.body FROM asks a JOIN runs r ON r.ws_no = a.ws_no AND r.no = a.run_no
         JOIN events q ON q.ws_no = a.ws_no AND q.pos = a.pos
         LEFT JOIN events c ON c.ws_no = a.ws_no AND c.pos = a.closed_pos WHERE a.ws_no = ?1 AND a.pos = ?2",
    )?;
    let (title, asked, answered): (Option<String>, String, Option<String>) =
        statement.query_row((rows::ws_no(pos), pos), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let bytes = asked.len() + answered.as_deref().map_or(0, str::len);
    let has = |found: &str| found.to_lowercase().contains(text);
    let event = |body: &str| serde_json::from_str::<Event>(body).map_err(|error| rows::odd("events.body", error));
    if title.as_deref().is_some_and(has) {
        return Ok((true, bytes));
    }
    let asked = event(&asked)?;
    let in_questions = asked.as_ask().is_some_and(|ask| {
        ask.questions
            .iter()
            .any(|question| has(&question.prompt) || question.options.iter().any(|option| has(&option.label)))
    });
    if in_questions {
        return Ok((true, bytes));
    }
    let answered = answered.as_deref().map(event).transpose()?;
    let in_answer = answered
        .as_ref()
        .and_then(Event::as_answered)
        .is_some_and(|answered| answered.answers.iter().any(|answer| answer.free_text.as_deref().is_some_and(has)));
    Ok((in_answer, bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sqlite::file::{self, Purpose};

    #[test]
    fn no_list_sorts_or_scans_the_whole_history() {
        let dir = tempfile::tempdir().unwrap();
        file::create(dir.path()).unwrap();
        let mut connection = file::connect(dir.path(), Purpose::Administer).unwrap();
        file::migrate(dir.path(), &mut connection).unwrap();
        let connection = Connection::from(connection);
        let wanted = |run_no, harnesses: &[i64]| Wanted {
            ws_no: 1,
            spaces: None,
            space_no: Some(1),
            run_no,
            harnesses: harnesses.to_vec(),
            states: |_, _| true,
            state: 0,
        };
        let statements = [
            by_urgency(&connection).unwrap(),
            newest_first(&connection, &wanted(None, &[])).unwrap(),
            newest_first(&connection, &wanted(None, &[1])).unwrap(),
            newest_first(&connection, &wanted(Some(1), &[1])).unwrap(),
        ];
        for statement in statements {
            let sql = statement.expanded_sql().unwrap();
            let mut explained = connection.prepare_cached(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: Vec<String> = explained.query_map([], |row| row.get(3)).unwrap().collect::<Result<_>>().unwrap();
            assert!(plan.iter().all(|step| step.starts_with("SEARCH asks USING")), "{sql}: {plan:?}");
        }
    }
}
