//! Erasing: texts are overwritten for good, wherever the folder holds them; what happened, when and by whom stays.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::sql::{Connection, OptionalExtension, Params, Transaction};
use chips_core::erase::{self, ERASED};
use chips_protocol::{AskId, Content, Event, HarnessId, ParticipantId, PersonId, RunId, Timestamp, WorkspaceId};

use super::{Admin, AdminError, acts, write};
use crate::engine::rows;
use crate::engine::work::late_answers;
use crate::postgres::node;
use crate::sqlite::{folder, scrub};
use crate::stops::stop;
use crate::{Location, sql};

/// Asks that one transaction erases: a server that writes beside it waits no longer than that takes.
const ASKS_AT_ONCE: usize = 500;
/// How often it is looked whether the server has let go of what it held, and how many times.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS: u32 = 1_000;

/// Whose texts are erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// What a person is called, typed and is reached by; they can't sign in any more.
    Person(PersonId),
    /// A closed ask, with its answers; and its run, where that has no other ask.
    Ask(AskId),
    /// What a run is called, and its asks; all of them are closed.
    Run(RunId),
    /// Everything in a workspace; nobody can sign in or send any more.
    Workspace(WorkspaceId),
}

impl Target {
    const fn word(self) -> &'static str {
        match self {
            Self::Person(_) => "person",
            Self::Ask(_) => "ask",
            Self::Run(_) => "run",
            Self::Workspace(_) => "workspace",
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Person(id) => id.fmt(f),
            Self::Ask(id) => id.fmt(f),
            Self::Run(id) => id.fmt(f),
            Self::Workspace(id) => id.fmt(f),
        }
    }
}

/// What is to be erased, as it was found: nothing is changed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasing {
    target: Target,
    ws_no: i64,
    /// The places of asks whose every text goes.
    asks: Vec<i64>,
    /// The places of asks in which a person typed something.
    typed: Vec<i64>,
    runs: Vec<i64>,
    persons: Vec<i64>,
    harnesses: Vec<i64>,
}

impl Erasing {
    /// How many asks lose texts.
    pub fn asks(&self) -> usize {
        self.asks.len() + self.typed.len()
    }

    /// How many runs lose what they are called.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// How many persons lose their name, their devices and their way in.
    pub fn persons(&self) -> usize {
        self.persons.len()
    }
}

/// What was erased, and when: what is kept of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// `person`, `ask`, `run` or `workspace`.
    pub what: String,
    /// Its identifier.
    pub id: String,
    /// When it began.
    pub at: Timestamp,
    /// Whether it was carried out to the end. One that was cut short is to be run again.
    pub done: bool,
}

/// What lies in the folder beside the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copies {
    /// What Chips kept itself of older layouts. Erasing removes them.
    pub own: Vec<PathBuf>,
    /// Backups that somebody put there. Erasing leaves them as they are.
    pub others: Vec<PathBuf>,
    /// Files that are not Chips' own. What is in them is not known; an export holds texts, and so does a packed backup. Erasing
    /// leaves them as they are.
    pub strange: Vec<PathBuf>,
}

/// What lies in the folder and holds what is to be erased as well, or may hold it.
///
/// # Errors
/// The folder can't be read.
pub fn copies(dir: &Path) -> Result<Copies, AdminError> {
    let told = |error: std::io::Error| AdminError::Io(error.to_string());
    let scrub::Strange { databases, others } = scrub::strange(dir).map_err(told)?;
    Ok(Copies { own: scrub::own_copies(dir).map_err(told)?, others: databases, strange: others })
}

impl Admin {
    /// Looks what erasing would erase.
    ///
    /// # Errors
    /// There is no such thing, it is ambiguous, or an ask of it is open.
    pub fn find_to_erase(&mut self, target: Target, within: Option<WorkspaceId>) -> Result<Erasing, AdminError> {
        let transaction = self.connection.transaction()?;
        let within = match within {
            None => None,
            Some(workspace) => Some(
                rows::workspace_no(&transaction, workspace)?
                    .ok_or_else(|| AdminError::NotFound(format!("there is no workspace {workspace}")))?,
            ),
        };
        find(&transaction, target, within)
    }

    /// Erases what was found: overwrites it, has a server that runs on the folder let go of what it holds in memory, and
    /// makes the file anew without what was left in its free pages. Run again after it was cut short, it goes on.
    ///
    /// # Errors
    /// The folder can't be written, or somebody reads an old state of it for so long that the rest can't be cleared; what
    /// was overwritten by then stays so.
    pub fn erase(&mut self, erasing: &Erasing) -> Result<Erasure, AdminError> {
        let &Erasing { target, ws_no, .. } = erasing;
        if let Some(file) = self.connection.sqlite() {
            file.pragma_update_and_check(None, "secure_delete", true, |_| Ok(())).map_err(sql::Error::from)?;
        }
        let (no, at) = write(&mut self.connection, |transaction| {
            let at = acts::now(transaction)?;
            let no: i64 = transaction.query_row(
                "INSERT INTO erasures (at, what, id) VALUES (?1, ?2, ?3) RETURNING no",
                (at.ms(), target.word(), target.to_string()),
                |row| row.get(0),
            )?;
            Ok((no, at))
        })?;
        // What a server had taken in before it knew is found by the second pass: nothing comes after that.
        for _ in 0..2 {
            self.pass(target, ws_no)?;
            self.let_go()?;
        }
        self.clear().map_err(|error| {
            AdminError::Io(format!(
                "what was to be erased is overwritten, but free room of the database may still hold it ({error}); run the same again"
            ))
        })?;
        write(&mut self.connection, |transaction| {
            // Those of the same that were cut short are done with it.
            Ok(transaction.execute(
                "UPDATE erasures SET done_at = ?4 WHERE what = ?1 AND id = ?2 AND no <= ?3 AND done_at IS NULL",
                (target.word(), target.to_string(), no, acts::now(transaction)?.ms()),
            )?)
        })?;
        Ok(Erasure { what: target.word().to_owned(), id: target.to_string(), at, done: true })
    }

    /// Overwrites what is there to be erased now.
    fn pass(&mut self, target: Target, ws_no: i64) -> Result<(), AdminError> {
        let Erasing { asks, typed, .. } = overwrite(&mut self.connection, |transaction| {
            // Looked for anew where nobody can write beside it: time has passed since somebody was asked whether they mean it.
            let erasing = find(transaction, target, Some(ws_no))?;
            transaction.execute("UPDATE meta SET scrub = 1", [])?;
            // First of all nobody writes more.
            erasing.persons.iter().try_for_each(|person| person_row(transaction, *person))?;
            erasing.harnesses.iter().try_for_each(|harness| harness_row(transaction, *harness))?;
            if let Target::Workspace(_) = target {
                names(transaction, ws_no)?;
            }
            erasing.runs.iter().try_for_each(|run| run_row(transaction, ws_no, *run))?;
            Ok(erasing)
        })?;
        for some in asks.chunks(ASKS_AT_ONCE) {
            overwrite(&mut self.connection, |transaction| {
                some.iter().try_for_each(|pos| ask(transaction, *pos, None))
            })?;
        }
        for some in typed.chunks(ASKS_AT_ONCE) {
            let Target::Person(person) = target else { break };
            overwrite(&mut self.connection, |transaction| {
                some.iter().try_for_each(|pos| ask(transaction, *pos, Some(person)))
            })?;
        }
        Ok(())
    }

    /// Clears away what is not visible any more, but there still.
    fn clear(&self) -> sql::Result<()> {
        match (&self.location, self.connection.sqlite()) {
            (Location::Folder(dir), Some(file)) => scrub::scrub(dir, file)?,
            _ => {
                // What readers of an older state may still want is left to the next time. All in one statement: several in one message would
                // be a transaction, and it refuses to run in one.
                self.connection.execute_batch(
                    "VACUUM events, asks, runs, run_labels, persons, harnesses, outbox, attempts, endpoints, preferences, sessions, grants, \
                     workspaces, spaces",
                )?;
                self.connection.execute("UPDATE meta SET scrub = 0", [])?;
            }
        }
        Ok(())
    }

    /// Waits until a server that runs on the folder holds nothing in memory any more that was erased before.
    fn let_go(&self) -> Result<(), AdminError> {
        for _ in 0..LOOKS {
            let seen = match self.location.folder() {
                Some(dir) => {
                    let seen = "SELECT erasures_seen >= erasures FROM meta";
                    self.connection.query_row(seen, [], |row| row.get(0))? || folder::holder(dir)?.is_none()
                }
                None => {
                    let alive = node::read_clock(&self.connection)?.ms() - node::SILENT_MS;
                    !self
                        .connection
                        .prepare_cached(
                            "SELECT 1 FROM nodes, meta WHERE seen_at > ?1 AND nodes.erasures_seen < erasures",
                        )?
                        .exists([alive])?
                }
            };
            if seen {
                return Ok(());
            }
            // Another process writes it: nothing else says when. Parking would end at once where a thread that spoke for this one to the
            // database has just ended.
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(LOOK_EVERY);
        }
        Err(AdminError::Refused(
            "what was to be erased is overwritten, but the server did not confirm that it holds nothing of it in memory; \
             restart it and run the same again"
                .to_owned(),
        ))
    }

    /// Everything that was ever erased, in the order in which it was.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn erasures(&mut self) -> Result<Vec<Erasure>, AdminError> {
        let mut statement =
            self.connection.prepare_cached("SELECT what, id, at, done_at IS NOT NULL FROM erasures ORDER BY no")?;
        let found = statement.query_map([], |row| {
            Ok(Erasure { what: row.get(0)?, id: row.get(1)?, at: Timestamp::from_ms(row.get(2)?), done: row.get(3)? })
        })?;
        Ok(found.collect::<crate::sql::Result<_>>()?)
    }
}

/// One act that overwrites texts: readers that began before it are told, and the server lets go of what it holds.
fn overwrite<T>(
    connection: &mut Connection,
    act: impl FnOnce(&Transaction<'_>) -> Result<T, AdminError>,
) -> Result<T, AdminError> {
    stop("an act of erasing begins");
    let done = write(connection, |transaction| {
        transaction.execute("UPDATE meta SET erasures = erasures + 1", [])?;
        let done = act(transaction)?;
        stop("an act of erasing");
        Ok(done)
    });
    stop("an act of erasing is written");
    done
}

fn find(connection: &Connection, target: Target, within: Option<i64>) -> Result<Erasing, AdminError> {
    let nothing = |ws_no| Erasing {
        target,
        ws_no,
        asks: Vec::new(),
        typed: Vec::new(),
        runs: Vec::new(),
        persons: Vec::new(),
        harnesses: Vec::new(),
    };
    let erasing = match target {
        Target::Ask(id) => {
            let (ws_no, pos) =
                one(connection, "SELECT ws_no, pos FROM asks WHERE ask_id = ?1", id.to_bytes(), target, within)?;
            let runs = numbers(
                connection,
                "SELECT run_no FROM asks WHERE ws_no = ?1 AND pos = ?2 AND NOT EXISTS (
                     SELECT 1 FROM asks b INDEXED BY asks_by_run
                     WHERE b.ws_no = asks.ws_no AND b.run_no = asks.run_no AND b.pos <> ?2)",
                (ws_no, pos),
            )?;
            Erasing { asks: vec![pos], runs, ..nothing(ws_no) }
        }
        Target::Run(id) => {
            let (ws_no, no) =
                one(connection, "SELECT ws_no, no FROM runs WHERE run_id = ?1", id.to_bytes(), target, within)?;
            let asks = numbers(
                connection,
                "SELECT pos FROM asks INDEXED BY asks_by_run WHERE ws_no = ?1 AND run_no = ?2 ORDER BY pos",
                (ws_no, no),
            )?;
            Erasing { asks, runs: vec![no], ..nothing(ws_no) }
        }
        Target::Person(id) => {
            let (ws_no, no) =
                one(connection, "SELECT ws_no, no FROM persons WHERE person_id = ?1", id.to_bytes(), target, within)?;
            Erasing { typed: typed_by(connection, ws_no, id)?, persons: vec![no], ..nothing(ws_no) }
        }
        Target::Workspace(id) => {
            let ws_no = rows::workspace_no(connection, id)?
                .ok_or_else(|| AdminError::NotFound(format!("there is no workspace {id}")))?;
            Erasing {
                asks: numbers(connection, "SELECT pos FROM asks WHERE ws_no = ?1 ORDER BY pos", [ws_no])?,
                runs: numbers(connection, "SELECT no FROM runs WHERE ws_no = ?1", [ws_no])?,
                persons: numbers(connection, "SELECT no FROM persons WHERE ws_no = ?1", [ws_no])?,
                harnesses: numbers(connection, "SELECT no FROM harnesses WHERE ws_no = ?1", [ws_no])?,
                ..nothing(ws_no)
            }
        }
    };
    // Of a workspace in which nobody can answer any more, what is open is erased as it is.
    if let Target::Workspace(_) = target
        && all_disabled(connection, erasing.ws_no)?
    {
        return Ok(erasing);
    }
    for pos in &erasing.asks {
        let open: Option<[u8; 16]> = connection
            .prepare_cached("SELECT ask_id FROM asks WHERE ws_no = ?1 AND pos = ?2 AND state = 0")?
            .query_row((erasing.ws_no, pos), |row| row.get(0))
            .optional()?;
        if let Some(open) = open.map(AskId::from_bytes) {
            return Err(AdminError::Refused(format!(
                "{open} is open: somebody may be answering it. Answer it or have the harness withdraw it, then erase"
            )));
        }
    }
    Ok(erasing)
}

/// Whether nobody can sign in or send any more.
fn all_disabled(connection: &Connection, ws_no: i64) -> Result<bool, AdminError> {
    let able = "SELECT 1 FROM persons WHERE ws_no = ?1 AND disabled_at IS NULL
                UNION ALL SELECT 1 FROM harnesses WHERE ws_no = ?1 AND disabled_at IS NULL";
    Ok(!connection.prepare_cached(able)?.exists([ws_no])?)
}

/// The workspace and the number of what has an identifier, which another workspace may have given as well.
fn one(
    connection: &Connection,
    sql: &str,
    id: [u8; 16],
    target: Target,
    within: Option<i64>,
) -> Result<(i64, i64), AdminError> {
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(i64, i64)> = found.collect::<crate::sql::Result<_>>()?;
    let mut found = found.into_iter().filter(|(ws_no, _)| within.is_none_or(|within| within == *ws_no));
    match (found.next(), found.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => Err(AdminError::Refused(format!(
            "several workspaces have a {} {target}; say which with --workspace",
            target.word()
        ))),
        (None, _) => Err(AdminError::NotFound(format!("there is no {} {target}", target.word()))),
    }
}

fn numbers(connection: &Connection, sql: &str, of: impl Params) -> Result<Vec<i64>, AdminError> {
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map(of, |row| row.get(0))?;
    Ok(found.collect::<crate::sql::Result<_>>()?)
}

/// The places of asks in whose answer, or beside which, a person typed something.
fn typed_by(connection: &Connection, ws_no: i64, person: PersonId) -> Result<Vec<i64>, AdminError> {
    // A text may quote the identifier of somebody else: what is found here is looked at again.
    let mut statement = connection.prepare_cached(
        "SELECT a.pos FROM asks a LEFT JOIN events e ON e.ws_no = a.ws_no AND e.pos = a.closed_pos
         WHERE a.ws_no = ?1 AND (replace(e.body, ?2, '') <> e.body OR replace(a.late, ?2, '') <> a.late) ORDER BY a.pos",
    )?;
    let found = statement.query_map((ws_no, person.to_string()), |row| row.get(0))?;
    Ok(found.collect::<crate::sql::Result<_>>()?)
}

/// Erases the texts of an ask; or of these only what one person typed.
fn ask(transaction: &Transaction<'_>, pos: i64, typed_by: Option<PersonId>) -> Result<(), AdminError> {
    let ws_no = rows::ws_no(pos);
    let found: Option<(Option<i64>, Option<String>)> = transaction
        .prepare_cached("SELECT closed_pos, late FROM asks WHERE ws_no = ?1 AND pos = ?2")?
        .query_row((ws_no, pos), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    // Dropped meanwhile: nothing of it is left.
    let Some((closed_pos, late)) = found else { return Ok(()) };
    let mut asked = event(transaction, pos)?;
    let Content::QuestionAsk(whole) = asked.content.clone() else {
        return Err(rows::odd("asks.pos", format_args!("{pos}, where the log has no question.ask")).into());
    };
    if let Some(closed_pos) = closed_pos {
        let mut closed = event(transaction, closed_pos)?;
        if let Content::QuestionAnswered(answered) = &mut closed.content {
            match typed_by {
                None => erase::answers(&whole, &mut answered.answers),
                Some(person) if answered.answered_by == ParticipantId::Person(person) => {
                    erase::free_text(&mut answered.answers);
                }
                Some(_) => {}
            }
        }
        put(transaction, closed_pos, &closed)?;
    }
    if late.is_some() {
        let mut late = late_answers(late.as_deref())?;
        for late in &mut late {
            match typed_by {
                None => erase::answers(&whole, &mut late.answers),
                Some(person) if late.by == ParticipantId::Person(person) => erase::free_text(&mut late.answers),
                Some(_) => {}
            }
        }
        let text = serde_json::to_string(&late).map_err(|error| rows::odd("a late answer", error))?;
        transaction
            .prepare_cached("UPDATE asks SET late = ?3 WHERE ws_no = ?1 AND pos = ?2")?
            .execute((ws_no, pos, text))?;
    }
    quotes(transaction, pos)?;
    if typed_by.is_some() {
        return Ok(());
    }
    if let Content::QuestionAsk(ask) = &mut asked.content {
        erase::ask(ask);
    }
    put(transaction, pos, &asked)?;
    // What is still to be taken back from a phone stays: it replaces what is shown there by what is left.
    transaction
        .prepare_cached("DELETE FROM outbox WHERE ws_no = ?1 AND ask_pos = ?2 AND NOT (state = 0 AND kind = 3)")?
        .execute((ws_no, pos))?;
    Ok(())
}

/// What the other side said of a message: it may have quoted what it was sent.
fn quotes(transaction: &Transaction<'_>, pos: i64) -> Result<(), AdminError> {
    transaction
        .prepare_cached("UPDATE attempts SET detail = ?3 WHERE ws_no = ?1 AND ask_pos = ?2 AND detail <> ''")?
        .execute((rows::ws_no(pos), pos, ERASED))?;
    transaction
        .prepare_cached(
            "UPDATE endpoints SET trouble = ?3 WHERE trouble IS NOT NULL
                 AND no IN (SELECT endpoint_no FROM attempts WHERE ws_no = ?1 AND ask_pos = ?2)",
        )?
        .execute((rows::ws_no(pos), pos, ERASED))?;
    Ok(())
}

fn event(transaction: &Transaction<'_>, pos: i64) -> Result<Event, AdminError> {
    let body: String = transaction
        .prepare_cached("SELECT body FROM events WHERE ws_no = ?1 AND pos = ?2")?
        .query_row((rows::ws_no(pos), pos), |row| row.get(0))?;
    Ok(serde_json::from_str(&body).map_err(|error| rows::odd("events.body", error))?)
}

fn put(transaction: &Transaction<'_>, pos: i64, event: &Event) -> Result<(), AdminError> {
    let body = serde_json::to_string(event).map_err(|error| rows::odd("an event", error))?;
    transaction.prepare_cached("UPDATE events SET body = ?3 WHERE ws_no = ?1 AND pos = ?2")?.execute((
        rows::ws_no(pos),
        pos,
        body,
    ))?;
    Ok(())
}

/// What a run is called, where it is looked at, and its labels.
fn run_row(transaction: &Transaction<'_>, ws_no: i64, no: i64) -> Result<(), AdminError> {
    transaction
        .prepare_cached(
            "UPDATE runs SET title = CASE WHEN title IS NULL THEN NULL ELSE ?3 END, url = NULL WHERE ws_no = ?1 AND no = ?2",
        )?
        .execute((ws_no, no, ERASED))?;
    transaction.prepare_cached("DELETE FROM run_labels WHERE ws_no = ?1 AND run_no = ?2")?.execute((ws_no, no))?;
    Ok(())
}

/// A person's name, ways in, devices, addresses and wishes.
fn person_row(transaction: &Transaction<'_>, no: i64) -> Result<(), AdminError> {
    let id = transaction.query_row("SELECT person_id FROM persons WHERE no = ?1", [no], |row| row.get(0))?;
    acts::disable(transaction, ParticipantId::Person(PersonId::from_bytes(id)))?;
    transaction.execute("UPDATE persons SET name = ?2 WHERE no = ?1", (no, ERASED))?;
    transaction.execute("DELETE FROM endpoints WHERE person_no = ?1", [no])?;
    transaction.execute("DELETE FROM preferences WHERE person_no = ?1", [no])?;
    transaction.execute(
        "UPDATE attempts SET name = ?2, detail = CASE WHEN detail = '' THEN '' ELSE ?2 END WHERE person_no = ?1",
        (no, ERASED),
    )?;
    Ok(())
}

/// A harness's name, token and addresses.
fn harness_row(transaction: &Transaction<'_>, no: i64) -> Result<(), AdminError> {
    let id = transaction.query_row("SELECT harness_id FROM harnesses WHERE no = ?1", [no], |row| row.get(0))?;
    acts::disable(transaction, ParticipantId::Harness(HarnessId::from_bytes(id)))?;
    transaction.execute("DELETE FROM endpoints WHERE harness_no = ?1", [no])?;
    transaction.execute("UPDATE harnesses SET name = ?2 WHERE no = ?1", (no, ERASED))?;
    Ok(())
}

/// What the workspace and its spaces are called, and what was noted of every try to tell somebody.
fn names(transaction: &Transaction<'_>, ws_no: i64) -> Result<(), AdminError> {
    transaction.execute("UPDATE workspaces SET name = ?2 WHERE no = ?1", (ws_no, ERASED))?;
    transaction.execute("UPDATE spaces SET name = ?2 WHERE ws_no = ?1", (ws_no, ERASED))?;
    transaction.execute(
        "UPDATE attempts SET name = ?2, detail = CASE WHEN detail = '' THEN '' ELSE ?2 END WHERE ws_no = ?1",
        (ws_no, ERASED),
    )?;
    Ok(())
}
