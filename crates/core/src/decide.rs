//! The life of an ask, as one pure function.

mod answer;
mod equal;

use std::sync::Arc;

use chips_protocol::api::LateAnswer;
use chips_protocol::{
    Content, Draft, DraftContent, Envelope, Event, EventId, Fault, FaultCode, Participant, QuestionAnswered, Timestamp,
};

use crate::access::{Access, Sender, Who};
use crate::ask::{AskFacts, RunFacts};
use crate::budget::{self, Usage};
use crate::refusal::Refusal;

pub use equal::{differs, same_ask, same_event};

/// What is known when a command is judged. The store loads what the command names, no more.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The event that the sender's accepted write with this `idempotency_key` appended.
    pub by_key: Option<Arc<Event>>,
    /// The event with the draft's `id` in this workspace, and whether the sender's own credential wrote it.
    pub by_id: Option<(Arc<Event>, bool)>,
    /// The ask with the draft's `ask_id` in this workspace, whoever may see it.
    pub ask: Option<AskFacts>,
    /// The run with the draft's `run_id` in this workspace, whoever's it is.
    pub run: Option<RunFacts>,
    /// Whether the draft's `space_id` names a space of this workspace.
    pub space_known: bool,
    /// The harness that the draft's agent is registered to, if it was seen before.
    pub agent_of: Option<chips_protocol::HarnessId>,
    /// What the sender may see.
    pub access: Option<Access>,
    /// The harness's budget; only needed for an ask.
    pub usage: Option<Usage>,
    /// Whether texts of the first of `by_key`, `by_id` and `ask` that is there were erased.
    pub erased: bool,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Command<'a> {
    /// A client's write, checked for shape.
    Write(&'a Sender, &'a Draft),
    /// The deadline of the ask may have passed.
    Expire,
    /// The run of the ask ends.
    EndRun,
}

/// An event to append. The store assigns its `seq`.
pub type NewEvent = Event;

/// What the sender is told when the command is not refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The last of [`Decision::append`] is the sender's.
    Appended,
    /// This event was stored the first time.
    Replayed {
        /// The event in the log.
        event: Arc<Event>,
        /// Whether the body says something else now.
        differs: bool,
    },
    /// There was nothing to do.
    Nothing,
}

/// What follows from a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Events to append, in this order and in one transaction, even where the reply is a refusal: an overdue ask is
    /// closed by whichever write finds it.
    pub append: Vec<NewEvent>,
    /// A person's answer that came too late, to be kept beside the ask.
    pub late: Option<LateAnswer>,
    /// What the sender is told.
    pub reply: Result<Reply, Refusal>,
}

impl Decision {
    fn refuse(refusal: Refusal) -> Self {
        Self { append: Vec::new(), late: None, reply: Err(refusal) }
    }

    fn invalid(pointer: &str, code: FaultCode, message: impl Into<String>) -> Self {
        Self::refuse(Refusal::Invalid(vec![Fault::new(pointer, code, message)]))
    }

    fn nothing() -> Self {
        Self { append: Vec::new(), late: None, reply: Ok(Reply::Nothing) }
    }

    fn replay(event: &Arc<Event>, differs: bool) -> Self {
        let reply = Reply::Replayed { event: Arc::clone(event), differs };
        Self { append: Vec::new(), late: None, reply: Ok(reply) }
    }
}

/// Judges a command against what is known, at a time of Chips' clock.
///
/// `fresh` is the id for an event of Chips' own (a time-out's or a run's end's); a client's event brings its own.
/// The order of the checks is the contract's (section 2): actor, replay by key, replay or conflict by id and by
/// ask, run and space, ask, closed, run ended, against the ask, budget. What only the raw body can show (shape) is
/// checked before.
pub fn decide(known: &Known, command: &Command<'_>, now: Timestamp, fresh: EventId) -> Decision {
    match command {
        Command::Write(sender, draft) => write(known, sender, draft, now, fresh),
        Command::Expire => match &known.ask {
            Some(facts) if facts.overdue(now) => {
                Decision { append: vec![time_out(facts, now, fresh)], late: None, reply: Ok(Reply::Appended) }
            }
            _ => Decision::nothing(),
        },
        Command::EndRun => match &known.ask {
            Some(facts) if facts.overdue(now) => {
                Decision { append: vec![time_out(facts, now, fresh)], late: None, reply: Ok(Reply::Appended) }
            }
            Some(facts) if facts.closed_by.is_none() => {
                Decision { append: vec![end_of_run(facts, now, fresh)], late: None, reply: Ok(Reply::Appended) }
            }
            _ => Decision::nothing(),
        },
    }
}

fn write(known: &Known, sender: &Sender, draft: &Draft, now: Timestamp, fresh: EventId) -> Decision {
    if let Some(refusal) = wrong_sender(known, sender, draft) {
        return Decision::refuse(refusal);
    }
    if let Some(event) = &known.by_key {
        return Decision::replay(event, differs(event, draft, known.erased));
    }
    if let Some((event, own)) = &known.by_id {
        return if *own && same_event(event, draft, known.erased) {
            Decision::replay(event, false)
        } else {
            Decision::refuse(Refusal::EventIdConflict)
        };
    }
    match &draft.content {
        DraftContent::QuestionAsk(_) => open(known, sender, draft, now),
        DraftContent::QuestionAnswered(_) => close(known, sender, draft, now, fresh),
    }
}

fn wrong_sender(known: &Known, sender: &Sender, draft: &Draft) -> Option<Refusal> {
    if !sender.may_act_as(draft.actor) {
        return Some(Refusal::ActorMismatch);
    }
    if let (Participant::Agent(..), Some(owner)) = (draft.actor, known.agent_of)
        && sender.who != Who::Harness(owner)
    {
        return Some(Refusal::ActorMismatch);
    }
    match (&draft.content, sender.who) {
        (DraftContent::QuestionAsk(_), Who::Person(_)) => Some(Refusal::WrongSender(
            "a person can't ask: `question.ask` is sent by a harness, with a harness's token",
        )),
        _ => None,
    }
}

/// Workspace and, for a draft that names a space, that the space exists.
fn misplaced(known: &Known, sender: &Sender, draft: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    if draft.workspace_id != sender.workspace_id {
        faults.push(Fault::new(
            "/workspace_id",
            FaultCode::Mismatch,
            format!("the token belongs to {}", sender.workspace_id),
        ));
    }
    if draft.space_id.is_some() && !known.space_known {
        faults.push(Fault::new("/space_id", FaultCode::UnknownSpace, "no space of this workspace has this id"));
    }
    faults
}

fn open(known: &Known, sender: &Sender, draft: &Draft, now: Timestamp) -> Decision {
    let DraftContent::QuestionAsk(ask) = &draft.content else { return Decision::nothing() };
    if let Some(facts) = &known.ask {
        let own = sender.who == Who::Harness(facts.harness_id);
        return if own && same_ask(&facts.event, ask, draft.run_id, known.erased) {
            Decision::replay(&facts.event, false)
        } else {
            Decision::refuse(Refusal::AskIdConflict)
        };
    }
    let mut faults = misplaced(known, sender, draft);
    let run = known.run.as_ref().filter(|run| sender.who == Who::Harness(run.harness_id));
    match run {
        None => faults.push(Fault::new(
            "/run_id",
            FaultCode::UnknownRun,
            "this harness has no run with this id; open it with POST /v1/runs",
        )),
        Some(run) => {
            if draft.space_id.is_some() && known.space_known && draft.space_id != run.space_id {
                faults.push(Fault::new(
                    "/space_id",
                    FaultCode::Mismatch,
                    "the run is not in this space; leave `space_id` out and the run's is taken",
                ));
            }
        }
    }
    let (Some(run), true) = (run, faults.is_empty()) else {
        return Decision::refuse(Refusal::Invalid(faults));
    };
    if run.ended {
        return Decision::refuse(Refusal::RunEnded);
    }
    if let Some(Err(over)) = known.usage.as_ref().map(|usage| budget::admit(usage, now)) {
        return Decision::refuse(Refusal::OverBudget(over));
    }
    let event = stored(sender, draft, run.space_id, now, Content::QuestionAsk(ask.clone()));
    Decision { append: vec![event], late: None, reply: Ok(Reply::Appended) }
}

fn close(known: &Known, sender: &Sender, draft: &Draft, now: Timestamp, fresh: EventId) -> Decision {
    let DraftContent::QuestionAnswered(answer) = &draft.content else { return Decision::nothing() };
    if draft.workspace_id != sender.workspace_id {
        return Decision::invalid(
            "/workspace_id",
            FaultCode::Mismatch,
            format!("the token belongs to {}", sender.workspace_id),
        );
    }
    // Whether an ask exists is not told to those who may not see it, so this comes before its run and space.
    let visible = known.ask.as_ref().filter(|facts| {
        known.access.as_ref().is_some_and(|access| access.sees(facts.harness_id, facts.event.envelope.space_id))
    });
    let Some(facts) = visible else {
        return Decision::refuse(Refusal::NotFound("there is no such ask"));
    };
    let envelope = &facts.event.envelope;
    let mut faults = misplaced(known, sender, draft);
    if draft.run_id != envelope.run_id {
        faults.push(Fault::new("/run_id", FaultCode::Mismatch, "the ask belongs to another run"));
    }
    if draft.space_id.is_some() && known.space_known && draft.space_id != envelope.space_id {
        faults.push(Fault::new(
            "/space_id",
            FaultCode::Mismatch,
            "the ask is not in this space; leave `space_id` out and the ask's is taken",
        ));
    }
    if !faults.is_empty() {
        return Decision::refuse(Refusal::Invalid(faults));
    }
    let faults = facts.ask().map(|ask| answer::faults(ask, answer, sender.who)).unwrap_or_default();

    let expired = facts.overdue(now).then(|| time_out(facts, now, fresh));
    if let Some(winner) = expired.clone().map(Arc::new).or_else(|| facts.closed_by.clone()) {
        let late = match sender.who {
            // Beside an ask whose texts were erased nothing is kept: its questions are not known any more.
            Who::Person(person) if faults.is_empty() && !known.erased => Some(LateAnswer {
                by: chips_protocol::ParticipantId::Person(person),
                at: now,
                answers: answer.answers.clone(),
            }),
            _ => None,
        };
        return Decision { append: expired.into_iter().collect(), late, reply: Err(Refusal::AlreadyClosed(winner)) };
    }
    if !faults.is_empty() {
        return Decision::refuse(Refusal::Invalid(faults));
    }
    let answered_by = match sender.who {
        Who::Person(id) => chips_protocol::ParticipantId::Person(id),
        Who::Harness(id) => chips_protocol::ParticipantId::Harness(id),
    };
    let content = Content::QuestionAnswered(QuestionAnswered {
        ask_id: answer.ask_id,
        answers: answer.answers.clone(),
        answered_by,
        answered_at: now,
        timed_out: Some(answer.timed_out),
    });
    let event = stored(sender, draft, envelope.space_id, now, content);
    Decision { append: vec![event], late: None, reply: Ok(Reply::Appended) }
}

/// The stored form of a client's write.
fn stored(
    sender: &Sender,
    draft: &Draft,
    space_id: Option<chips_protocol::SpaceId>,
    now: Timestamp,
    content: Content,
) -> Event {
    let actor = match (draft.actor, sender.who) {
        (Participant::Agent(id, _), Who::Harness(harness)) => Participant::Agent(id, Some(harness)),
        (actor, _) => actor,
    };
    Event {
        envelope: Envelope {
            id: draft.id,
            ts: now,
            workspace_id: sender.workspace_id,
            space_id,
            actor: actor.actor(),
            run_id: draft.run_id,
            seq: None,
            idempotency_key: Some(draft.idempotency_key.clone()),
        },
        content,
    }
}

/// An event of Chips' own that closes an ask.
fn by_system(facts: &AskFacts, now: Timestamp, id: EventId, content: QuestionAnswered) -> Event {
    let asked = &facts.event.envelope;
    Event {
        envelope: Envelope {
            id,
            ts: now,
            workspace_id: asked.workspace_id,
            space_id: asked.space_id,
            actor: Participant::System.actor(),
            run_id: asked.run_id,
            seq: None,
            idempotency_key: None,
        },
        content: Content::QuestionAnswered(content),
    }
}

fn time_out(facts: &AskFacts, now: Timestamp, id: EventId) -> Event {
    let content = QuestionAnswered {
        ask_id: facts.event.content.ask_id(),
        answers: facts.ask().map(answer::defaults).unwrap_or_default(),
        answered_by: chips_protocol::ParticipantId::System,
        answered_at: now,
        timed_out: Some(true),
    };
    by_system(facts, now, id, content)
}

fn end_of_run(facts: &AskFacts, now: Timestamp, id: EventId) -> Event {
    let content = QuestionAnswered {
        ask_id: facts.event.content.ask_id(),
        answers: Vec::new(),
        answered_by: chips_protocol::ParticipantId::Harness(facts.harness_id),
        answered_at: now,
        timed_out: Some(false),
    };
    by_system(facts, now, id, content)
}
