//! Runs and acknowledgements, and whether a write is possible at all.

use crate::sql::{OptionalExtension, Result};
use chips_core::decide::Command as Judged;
use chips_core::{Refusal, Sender, Who};
use chips_protocol::api::{Ask, NewRun, Run};
use chips_protocol::{AskId, Fault, FaultCode, RunId, WorkspaceId};

use super::submit::close_by_chips;
use super::view;
use super::work::{RunRow, Scene};
use super::writer::{Command, Work};

/// The longest lease, in milliseconds.
const LEASE_LIMIT_MS: f64 = 31_536_000_000.0;

/// A harness opens a run.
pub(crate) struct OpenRun {
    pub(crate) sender: Sender,
    pub(crate) run: NewRun,
}

impl Command for OpenRun {
    type Done = (Run, bool);

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.sender.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Self::Done, Refusal>> {
        let Who::Harness(harness) = self.sender.who else {
            return Ok(Err(Refusal::WrongSender("a person can't open a run; send a harness's token")));
        };
        let scene = work.scene(self.sender.workspace_id)?;
        if let Some(run_id) = self.run.run_id
            && let Some(known) = work.run(&scene, run_id)?
        {
            if known.facts.harness_id != harness {
                return Ok(Err(Refusal::RunIdConflict));
            }
            return Ok(Ok((view::run_at(work.connection, scene.ws_no, known.run_no)?, false)));
        }
        let space_no = match self.run.space_id {
            Some(space) => work.space_no(&scene, space)?,
            None => None,
        };
        let mut faults = Vec::new();
        if self.run.space_id.is_some() && space_no.is_none() {
            faults.push(Fault::new("/space_id", FaultCode::UnknownSpace, "no space of this workspace has this id"));
        }
        if let Some(parent) = self.run.parent_run_id
            && work.run(&scene, parent)?.is_none_or(|parent| parent.facts.harness_id != harness)
        {
            faults.push(Fault::new("/parent_run_id", FaultCode::UnknownRun, "this harness has no run with this id"));
        }
        if !faults.is_empty() {
            return Ok(Err(Refusal::Invalid(faults)));
        }
        let harness_no: i64 = work
            .connection
            .prepare_cached("SELECT no FROM harnesses WHERE harness_id = ?1")?
            .query_row([harness.to_bytes()], |row| row.get(0))?;
        let run_no = self.insert(work, &scene, harness_no, space_no)?;
        Ok(Ok((view::run_at(work.connection, scene.ws_no, run_no)?, true)))
    }
}

impl OpenRun {
    fn insert(&self, work: &mut Work<'_>, scene: &Scene, harness_no: i64, space_no: Option<i64>) -> Result<i64> {
        let run = &self.run;
        let run_id =
            run.run_id.unwrap_or_else(|| RunId::from_parts(scene.now.ms().unsigned_abs(), work.state.random.next()));
        let lease_ms = run.lease_seconds.as_ref().map(lease_ms);
        work.write()?;
        let run_no = work
            .connection
            .prepare_cached(
                "INSERT INTO runs (ws_no, run_id, harness_no, space_no, title, url, parent_run_id,
                                   lease_seconds, lease_ms, lease_until, started_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING no",
            )?
            .query_row(
                (
                    scene.ws_no,
                    run_id.to_bytes(),
                    harness_no,
                    space_no,
                    &run.title,
                    &run.url,
                    run.parent_run_id.map(RunId::to_bytes),
                    run.lease_seconds.as_ref().map(ToString::to_string),
                    lease_ms,
                    lease_ms.map(|ms| scene.now.plus_ms(ms).ms()),
                    scene.now.ms(),
                ),
                |row| row.get(0),
            )?;
        for (key, value) in run.labels.iter().flatten() {
            work.connection
                .prepare_cached("INSERT INTO run_labels (ws_no, run_no, key, value) VALUES (?1, ?2, ?3, ?4)")?
                .execute((scene.ws_no, run_no, key, value))?;
        }
        Ok(run_no)
    }
}

/// A lease in whole milliseconds, rounded up and held within its bounds.
fn lease_ms(seconds: &serde_json::Number) -> i64 {
    let ms = (seconds.as_f64().unwrap_or_default() * 1000.0).ceil();
    if ms.is_finite() { ms.clamp(1.0, LEASE_LIMIT_MS) as i64 } else { LEASE_LIMIT_MS as i64 }
}

/// A harness ends a run of its own, and with it the run's open asks.
pub(crate) struct EndRun {
    pub(crate) sender: Sender,
    pub(crate) run_id: RunId,
}

impl Command for EndRun {
    type Done = Run;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.sender.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Run, Refusal>> {
        let scene = work.scene(self.sender.workspace_id)?;
        let Some(run) = work.run(&scene, self.run_id)? else { return Ok(Err(NO_RUN)) };
        if let Some(refusal) = not_its_own(work, &self.sender, &run)? {
            return Ok(Err(refusal));
        }
        if !run.facts.ended {
            let open: Vec<i64> = work
                .connection
                .prepare_cached(
                    "SELECT pos FROM asks INDEXED BY asks_by_run WHERE ws_no = ?1 AND run_no = ?2 AND state = 0 ORDER BY pos",
                )?
                .query_map((scene.ws_no, run.run_no), |row| row.get(0))?
                .collect::<Result<_>>()?;
            for pos in open {
                let ask = work.ask_at(&scene, pos)?;
                close_by_chips(work, &scene, &ask, &Judged::EndRun)?;
            }
            work.write()?;
            work.connection.prepare_cached("UPDATE runs SET ended_at = ?3 WHERE ws_no = ?1 AND no = ?2")?.execute((
                scene.ws_no,
                run.run_no,
                scene.now.ms(),
            ))?;
        }
        view::run_at(work.connection, scene.ws_no, run.run_no).map(Ok)
    }
}

const NO_RUN: Refusal = Refusal::NotFound("there is no such run");
const NO_ASK: Refusal = Refusal::NotFound("there is no such ask");

/// Only the harness whose run it is may end it. Whether it exists is told only to those who can see it.
fn not_its_own(work: &Work<'_>, sender: &Sender, run: &RunRow) -> Result<Option<Refusal>> {
    let access = work.access_to(sender, run.space_no, run.facts.space_id)?;
    Ok(match sender.who {
        _ if !access.sees(run.facts.harness_id, run.facts.space_id) => Some(NO_RUN),
        Who::Person(_) => Some(Refusal::WrongSender("only the harness whose run it is ends it")),
        Who::Harness(_) => None,
    })
}

/// A harness says that it has acted on the answer.
pub(crate) struct Acknowledge {
    pub(crate) sender: Sender,
    pub(crate) ask_id: AskId,
}

impl Command for Acknowledge {
    type Done = Ask;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.sender.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Ask, Refusal>> {
        let scene = work.scene(self.sender.workspace_id)?;
        let Some(ask) = work.ask(&scene, self.ask_id)? else { return Ok(Err(NO_ASK)) };
        let access = work.access(&self.sender, &ask)?;
        if !access.sees(ask.facts.harness_id, ask.facts.event.envelope.space_id) {
            return Ok(Err(NO_ASK));
        }
        if let Who::Person(_) = self.sender.who {
            return Ok(Err(Refusal::WrongSender("only the harness that asked acknowledges the answer")));
        }
        let unmarked: Option<i64> = work
            .connection
            .prepare_cached(
                "SELECT 1 FROM asks WHERE ws_no = ?1 AND pos = ?2 AND state <> 0 AND acknowledged_at IS NULL",
            )?
            .query_row((scene.ws_no, ask.pos), |row| row.get(0))
            .optional()?;
        if unmarked.is_some() {
            work.write()?;
            work.connection
                .prepare_cached("UPDATE asks SET acknowledged_at = ?3 WHERE ws_no = ?1 AND pos = ?2")?
                .execute((scene.ws_no, ask.pos, scene.now.ms()))?;
        }
        view::ask_at(work.connection, ask.pos, scene.now).map(Ok)
    }
}

/// Finds out whether there is room for a write and the disk takes it: fills two pages and empties them again.
pub(crate) struct Ready;

impl Command for Ready {
    type Done = ();

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<(), Refusal>> {
        work.write()?;
        work.connection.prepare_cached("INSERT INTO probe (pad) VALUES (?1)")?.execute([[0_u8; 8192]])?;
        work.connection.prepare_cached("DELETE FROM probe")?.execute([])?;
        Ok(Ok(()))
    }
}
