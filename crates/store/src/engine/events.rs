//! Reading the log from the file: where what is wanted is not in memory any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::sql::{Connection, OptionalExtension, Result};
use chips_core::{Access, Who};
use chips_protocol::{AskId, HarnessId, RunId, SpaceId};

use super::rows;
use crate::{EventsBatch, EventsQuery, Identity, Record};

/// Rows that one call looks through at most.
const ROWS: usize = 20_000;
/// Bytes of JSON after which one call returns with what it has.
const BYTES: usize = 4 << 20;

/// What fits the query up to `head`, the last event that everybody has been told of.
pub(crate) fn read(connection: &Connection, viewer: &Identity, query: &EventsQuery, head: u64) -> Result<EventsBatch> {
    let none = EventsBatch { kept_from: 1, ..EventsBatch::default() };
    let Some(ws_no) = rows::workspace_no(connection, viewer.sender.workspace_id)? else {
        return Ok(EventsBatch { through: query.after, ..none });
    };
    let (kept_from, _) = rows::kept_from(connection, ws_no)?;
    let empty = |head: u64| EventsBatch { through: query.after.max(head), head, kept_from, ..EventsBatch::default() };
    if query.after >= head {
        // The file may be ahead of what was told, for the moment between a commit and the wake-up.
        let head = if query.after > head { rows::head(connection, ws_no)?.0.max(head).min(query.after) } else { head };
        return Ok(empty(head));
    }
    let mut batch = Collected::new(query, head, kept_from);
    if let Some(ask_id) = query.ask_id {
        of_ask(connection, viewer, ws_no, ask_id, &mut batch)?;
    } else if let Some(run_id) = query.run_id {
        of_run(connection, viewer, ws_no, run_id, &mut batch)?;
    } else {
        match viewer.sender.who {
            Who::Harness(harness) => of_harness(connection, ws_no, harness, &mut batch)?,
            Who::Person(_) => of_person(connection, viewer, ws_no, &mut batch)?,
        }
    }
    Ok(batch.done())
}

/// A batch in the making.
struct Collected<'a> {
    query: &'a EventsQuery,
    batch: EventsBatch,
    bytes: usize,
    full: bool,
}

impl<'a> Collected<'a> {
    fn new(query: &'a EventsQuery, head: u64, kept_from: u64) -> Self {
        let batch = EventsBatch { records: Vec::new(), through: head, head, kept_from };
        Self { query, batch, bytes: 0, full: false }
    }

    /// The first and the last place to look at.
    fn range(&self, ws_no: i64) -> (i64, i64) {
        // What stands before the log belongs to an ask that is not gone yet, and not to the log.
        let first = self.batch.kept_from.max(self.query.after + 1);
        (rows::pos(ws_no, first), rows::pos(ws_no, self.batch.head))
    }

    fn wants(&self, type_code: i64) -> bool {
        self.query.event_type.is_none_or(|wanted| rows::type_code(wanted) == type_code)
    }

    /// Adds a record. False where it has no place any more: the read ends before it.
    fn add(&mut self, record: Arc<Record>) -> bool {
        let fits = self.batch.records.is_empty() || self.bytes + record.json.len() <= BYTES;
        if self.batch.records.len() >= self.query.limit || !fits {
            self.stop_before(record.seq);
            return false;
        }
        self.bytes += record.json.len();
        self.batch.records.push(record);
        true
    }

    /// The read ends before this event, which was not looked at.
    fn stop_before(&mut self, seq: u64) {
        self.full = true;
        self.batch.through = seq - 1;
    }

    fn done(self) -> EventsBatch {
        self.batch
    }
}

/// The one or two events of an ask.
fn of_ask(
    connection: &Connection,
    viewer: &Identity,
    ws_no: i64,
    ask_id: AskId,
    batch: &mut Collected<'_>,
) -> Result<()> {
    let found = connection
        .prepare_cached(
            "SELECT a.pos, a.closed_pos, h.harness_id, s.space_id, r.run_id FROM asks a
             JOIN harnesses h ON h.no = a.harness_no JOIN runs r ON r.ws_no = a.ws_no AND r.no = a.run_no
             LEFT JOIN spaces s ON s.no = a.space_no
             WHERE a.ws_no = ?1 AND a.ask_id = ?2",
        )?
        .query_row((ws_no, ask_id.to_bytes()), |row| {
            let places: (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            let harness = HarnessId::from_bytes(row.get(2)?);
            let space = row.get::<_, Option<[u8; 16]>>(3)?.map(SpaceId::from_bytes);
            Ok((places, harness, space, RunId::from_bytes(row.get(4)?)))
        })
        .optional()?;
    let Some(((opened, closed), harness, space, run_id)) = found else { return Ok(()) };
    if !viewer.access.sees(harness, space) || batch.query.run_id.is_some_and(|wanted| wanted != run_id) {
        return Ok(());
    }
    let typed = std::iter::once((opened, 1)).chain(closed.map(|closed| (closed, 2)));
    add_places(connection, ws_no, typed.map(Ok), batch)
}

/// The events of a run: those of its asks.
fn of_run(
    connection: &Connection,
    viewer: &Identity,
    ws_no: i64,
    run_id: RunId,
    batch: &mut Collected<'_>,
) -> Result<()> {
    let found: Option<(i64, HarnessId, Option<SpaceId>)> = connection
        .prepare_cached(
            "SELECT r.no, h.harness_id, s.space_id FROM runs r
             JOIN harnesses h ON h.no = r.harness_no LEFT JOIN spaces s ON s.no = r.space_no
             WHERE r.ws_no = ?1 AND r.run_id = ?2",
        )?
        .query_row((ws_no, run_id.to_bytes()), |row| {
            let space = row.get::<_, Option<[u8; 16]>>(2)?.map(SpaceId::from_bytes);
            Ok((row.get(0)?, HarnessId::from_bytes(row.get(1)?), space))
        })
        .optional()?;
    let Some((run_no, harness, space)) = found else { return Ok(()) };
    if !viewer.access.sees(harness, space) {
        return Ok(());
    }
    let (first, last) = batch.range(ws_no);
    let mut statement = connection.prepare_cached(
        "SELECT pos AS place, 1 AS type FROM asks INDEXED BY asks_by_run
             WHERE ws_no = ?4 AND run_no = ?1 AND pos BETWEEN ?2 AND ?3
         UNION ALL SELECT closed_pos, 2 FROM asks INDEXED BY asks_by_run
             WHERE ws_no = ?4 AND run_no = ?1 AND closed_pos BETWEEN ?2 AND ?3
         ORDER BY place",
    )?;
    let places = statement.query_map((run_no, first, last, ws_no), |row| Ok((row.get(0)?, row.get(1)?)))?;
    add_places(connection, ws_no, places, batch)
}

/// Adds the events at these places, each with the code of its type.
fn add_places(
    connection: &Connection,
    ws_no: i64,
    places: impl Iterator<Item = Result<(i64, i64)>>,
    batch: &mut Collected<'_>,
) -> Result<()> {
    let (first, last) = batch.range(ws_no);
    for place in places {
        let (pos, type_code) = place?;
        if (first..=last).contains(&pos)
            && batch.wants(type_code)
            && let Some(record) = rows::record_at(connection, pos)?
            && !batch.add(record)
        {
            break;
        }
    }
    Ok(())
}

/// The events of a harness's runs.
fn of_harness(connection: &Connection, ws_no: i64, harness: HarnessId, batch: &mut Collected<'_>) -> Result<()> {
    let harness_no: Option<i64> = connection
        .prepare_cached("SELECT no FROM harnesses WHERE harness_id = ?1 AND ws_no = ?2")?
        .query_row((harness.to_bytes(), ws_no), |row| row.get(0))
        .optional()?;
    let (first, last) = batch.range(ws_no);
    let mut statement = connection.prepare_cached(
        "SELECT pos, type, body FROM events INDEXED BY events_by_harness
         WHERE ws_no = ?4 AND harness_no = ?1 AND pos BETWEEN ?2 AND ?3 ORDER BY pos",
    )?;
    let mut found = statement.query((harness_no, first, last, ws_no))?;
    let mut looked = 0;
    while let Some(row) = found.next()? {
        let seq = rows::seq(row.get(0)?);
        if looked == ROWS {
            batch.stop_before(seq);
            break;
        }
        looked += 1;
        if batch.wants(row.get(1)?) && !batch.add(rows::record(seq, harness.to_bytes(), row.get(2)?)?) {
            break;
        }
    }
    Ok(())
}

/// The events of the spaces that a person is in, and of none.
fn of_person(connection: &Connection, viewer: &Identity, ws_no: i64, batch: &mut Collected<'_>) -> Result<()> {
    let seen = seen_spaces(connection, viewer, ws_no)?;
    let mut harnesses: HashMap<i64, [u8; 16]> = HashMap::new();
    let (first, last) = batch.range(ws_no);
    let mut statement = connection.prepare_cached(
        "SELECT pos, type, space_no, harness_no, body FROM events NOT INDEXED
         WHERE ws_no = ?3 AND pos BETWEEN ?1 AND ?2 ORDER BY pos",
    )?;
    let mut found = statement.query((first, last.min(first + ROWS as i64), ws_no))?;
    let mut looked = 0;
    while let Some(row) = found.next()? {
        let seq = rows::seq(row.get(0)?);
        if looked == ROWS {
            batch.stop_before(seq);
            break;
        }
        looked += 1;
        let visible = row.get::<_, Option<i64>>(2)?.is_none_or(|space| seen.contains(&space));
        if !visible || !batch.wants(row.get(1)?) {
            continue;
        }
        let harness_no: i64 = row.get(3)?;
        let harness = match harnesses.get(&harness_no) {
            Some(harness) => *harness,
            None => {
                let harness = connection
                    .prepare_cached("SELECT harness_id FROM harnesses WHERE no = ?1")?
                    .query_row([harness_no], |row| row.get(0))?;
                harnesses.insert(harness_no, harness);
                harness
            }
        };
        if !batch.add(rows::record(seq, harness, row.get(4)?)?) {
            break;
        }
    }
    Ok(())
}

/// The numbers of the spaces that the viewer sees; none for a harness, which is not judged by spaces.
pub(crate) fn seen_spaces(connection: &Connection, viewer: &Identity, ws_no: i64) -> Result<HashSet<i64>> {
    let Access::Person(_, seen) = &viewer.access else { return Ok(HashSet::new()) };
    let mut statement = connection.prepare_cached("SELECT no, space_id FROM spaces WHERE ws_no = ?1")?;
    let spaces = statement.query_map([ws_no], |row| Ok((row.get(0)?, SpaceId::from_bytes(row.get(1)?))))?;
    spaces
        .filter(|space| space.as_ref().map_or(true, |(_, id)| seen.contains(id)))
        .map(|space| space.map(|(no, _)| no))
        .collect()
}
