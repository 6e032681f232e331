//! Client writes and time-outs: loads what is known, has it judged, writes what follows.

use std::sync::Arc;

use crate::sql::Result;
use chips_core::decide::{Command as Judged, Decision, Known, Reply, decide};
use chips_core::{Refusal, Sender, Who};
use chips_protocol::{AskId, Content, Draft, DraftContent, WorkspaceId};

use super::rows;
use super::usage;
use super::work::{AskRow, RunRow, Scene, agent};
use super::writer::{Command, Work};
use crate::postgres::ahead;
use crate::{Record, Submitted};

/// A client's write.
pub(crate) struct Submit {
    pub(crate) sender: Sender,
    pub(crate) draft: Draft,
}

/// What was loaded for a write, and what the store itself needs of it again.
#[derive(Default)]
struct Loaded {
    known: Known,
    run: Option<RunRow>,
    ask: Option<AskRow>,
}

impl Command for Submit {
    type Done = Submitted;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.sender.workspace_id)
    }

    fn client_write(&self) -> Option<(&Sender, &Draft)> {
        Some((&self.sender, &self.draft))
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<Submitted, Refusal>> {
        let scene = work.scene(self.sender.workspace_id)?;
        let loaded = self.load(work, &scene)?;
        let fresh = work.fresh(scene.now);
        let decision = decide(&loaded.known, &Judged::Write(&self.sender, &self.draft), scene.now, fresh);
        self.carry_out(work, &scene, &loaded, decision)
    }
}

impl Submit {
    /// What is known, in the order of the checks: what a replay makes needless is not read.
    fn load(&self, work: &mut Work<'_>, scene: &Scene) -> Result<Loaded> {
        let Self { sender, draft } = self;
        let mut loaded = Loaded::default();
        let foreseen = ahead::foreseen(work, scene, sender, draft);
        let known_before = foreseen.is_some();
        let (found_ask, found_run) = if let Some(foreseen) = foreseen {
            loaded.known.agent_of = foreseen.agent_of;
            loaded.known.space_known = foreseen.space_known;
            (foreseen.ask.map(|found| work.ask_row(scene, found)).transpose()?, foreseen.run)
        } else {
            ahead::settle(work)?;
            if let Some(agent) = agent(draft.actor) {
                loaded.known.agent_of = rows::agent_of(work.connection, scene.ws_no, agent)?;
            }
            if let Some(record) = work.by_key(scene, sender, &draft.idempotency_key)? {
                loaded.known.erased = rows::was_erased(work.connection, &record.event)?;
                loaded.known.by_key = Some(Arc::clone(&record.event));
                return Ok(loaded);
            }
            if let Some(record) = work.by_id(scene, draft.id)? {
                let own = rows::sender_of(&record.event) == Some(sender.who);
                loaded.known.erased = rows::was_erased(work.connection, &record.event)?;
                loaded.known.by_id = Some((Arc::clone(&record.event), own));
                return Ok(loaded);
            }
            let ask = work.ask(scene, draft.content.ask_id())?;
            loaded.known.space_known = match draft.space_id {
                Some(space) => work.space_no(scene, space)?.is_some(),
                None => false,
            };
            let asks = matches!(draft.content, DraftContent::QuestionAsk(_)) && ask.is_none();
            (ask, if asks { work.run(scene, draft.run_id)? } else { None })
        };
        loaded.ask = found_ask;
        if let Some(ask) = &loaded.ask {
            loaded.known.erased = rows::was_erased(work.connection, &ask.facts.event)?;
            loaded.known.ask = Some(ask.facts.clone());
        }
        match (&draft.content, &loaded.ask) {
            (DraftContent::QuestionAsk(_), None) => {
                loaded.run = found_run;
                if let Some(run) = &loaded.run {
                    loaded.known.run = Some(run.facts.clone());
                    let harness = (scene.ws_no, run.harness_no);
                    loaded.known.usage = Some(if known_before {
                        work.state.ahead.usage(run.harness_no, run.limits)
                    } else {
                        usage::used(work.connection, work.shared, harness, run.limits, scene.now)?
                    });
                }
            }
            (DraftContent::QuestionAnswered(_), Some(ask)) => {
                loaded.known.access = Some(work.access(sender, ask)?);
            }
            _ => {}
        }
        Ok(loaded)
    }

    fn carry_out(
        &self,
        work: &mut Work<'_>,
        scene: &Scene,
        loaded: &Loaded,
        decision: Decision,
    ) -> Result<std::result::Result<Submitted, Refusal>> {
        let mut last: Option<Arc<Record>> = None;
        for event in decision.append {
            let record = match (&event.content, &loaded.run, &loaded.ask) {
                (Content::QuestionAsk(_), Some(run), _) => work.open_ask(scene, &self.sender, run, event)?,
                (Content::QuestionAnswered(_), _, Some(ask)) => {
                    let sender = event.envelope.idempotency_key.is_some().then_some(&self.sender);
                    work.close_ask(scene, sender, ask, event)?
                }
                _ => return Err(rows::odd("a decision", "an event whose run or ask was not loaded")),
            };
            last = Some(record);
        }
        if let (Some(late), Some(ask)) = (decision.late, &loaded.ask) {
            work.keep_late(ask, late)?;
        }
        match decision.reply {
            Ok(Reply::Appended) => {
                if let (Some(agent), None, Who::Harness(harness)) =
                    (agent(self.draft.actor), loaded.known.agent_of, self.sender.who)
                {
                    work.register(scene, agent, harness)?;
                }
                let record = last.ok_or_else(|| rows::odd("a decision", "nothing that it appended"))?;
                Ok(Ok(Submitted::Appended(record)))
            }
            Ok(Reply::Replayed { event, differs }) => {
                let seq = event.envelope.seq.ok_or_else(|| rows::odd("the log", "an event without a seq"))?;
                let record = work.record(scene, rows::pos(scene.ws_no, seq))?;
                Ok(Ok(Submitted::Replayed { record, differs }))
            }
            Ok(Reply::Nothing) => Err(rows::odd("a decision", "no word on a write")),
            // The winner may have been appended by this very write: then it has its seq only now.
            Err(Refusal::AlreadyClosed(winner)) => {
                Ok(Err(Refusal::AlreadyClosed(last.map_or(winner, |record| Arc::clone(&record.event)))))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

/// The deadline of an ask may have passed.
pub(crate) struct Expire {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) ask_id: AskId,
}

impl Command for Expire {
    type Done = bool;

    fn workspace(&self) -> Option<WorkspaceId> {
        Some(self.workspace_id)
    }

    fn run(&self, work: &mut Work<'_>) -> Result<std::result::Result<bool, Refusal>> {
        let scene = work.scene(self.workspace_id)?;
        let Some(ask) = work.ask(&scene, self.ask_id)? else { return Ok(Ok(false)) };
        close_by_chips(work, &scene, &ask, &Judged::Expire).map(Ok)
    }
}

/// Closes an ask by an event of Chips' own, where the rules say so.
pub(crate) fn close_by_chips(work: &mut Work<'_>, scene: &Scene, ask: &AskRow, command: &Judged<'_>) -> Result<bool> {
    let known = Known { ask: Some(ask.facts.clone()), ..Known::default() };
    let fresh = work.fresh(scene.now);
    let decision = decide(&known, command, scene.now, fresh);
    let closes = !decision.append.is_empty();
    for event in decision.append {
        work.close_ask(scene, None, ask, event)?;
    }
    Ok(closes)
}
