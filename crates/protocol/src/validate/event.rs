//! The checks of the envelope, and the way into those of the contents.

use serde_json::Value;

use super::checks::{Checks, Field, Object, Place, TextRule, closest};
use super::{Fault, FaultCode, answered, ask};
use crate::event::{Content, Draft, DraftContent, Envelope, Event, EventType, Participant, ParticipantKind, VERSION};
use crate::id::{AgentId, AskId, EventId, HarnessId, ParticipantId, PersonId, RunId, SpaceId, WorkspaceId};
use crate::limits;
use crate::time::Timestamp;

/// Which of the two forms of an event is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A client's write: what Chips writes itself may be left out and counts for nothing.
    Draft,
    /// What the log holds.
    Stored,
}

/// The fields of every event, in the order of the protocol's tables.
pub(crate) const ENVELOPE: [&str; 10] =
    ["v", "type", "id", "ts", "workspace_id", "space_id", "run_id", "seq", "idempotency_key", "actor"];

/// A key is compared and kept, never shown to be tapped.
const IDEMPOTENCY_KEY: TextRule = TextRule::prose(limits::IDEMPOTENCY_KEY);

/// What the envelope says, as far as it could be checked.
struct Head {
    id: Option<EventId>,
    ts: Option<Timestamp>,
    workspace_id: Option<WorkspaceId>,
    space_id: Option<SpaceId>,
    run_id: Option<RunId>,
    seq: Option<u64>,
    idempotency_key: Option<String>,
    actor: Option<Participant>,
}

pub(super) fn draft(value: &Value) -> Result<Draft, Vec<Fault>> {
    let mut checks = Checks::default();
    let typed = with_fields(&mut checks, value, Form::Draft, |checks, object, head, event_type| {
        let content = match event_type {
            EventType::QuestionAsk => ask::content(checks, object).map(DraftContent::QuestionAsk),
            EventType::QuestionAnswered => answered::draft(checks, object).map(DraftContent::QuestionAnswered),
        };
        Some(Draft {
            id: head.id?,
            workspace_id: head.workspace_id?,
            space_id: head.space_id,
            run_id: head.run_id?,
            idempotency_key: head.idempotency_key?,
            actor: head.actor?,
            content: content?,
        })
    });
    checks.finish(typed)
}

pub(super) fn stored(value: &Value) -> Result<Event, Vec<Fault>> {
    let mut checks = Checks::default();
    let typed = with_fields(&mut checks, value, Form::Stored, |checks, object, head, event_type| {
        let content = match event_type {
            EventType::QuestionAsk => ask::content(checks, object).map(Content::QuestionAsk),
            EventType::QuestionAnswered => answered::stored(checks, object).map(Content::QuestionAnswered),
        };
        Some(Event {
            envelope: Envelope {
                id: head.id?,
                ts: head.ts?,
                workspace_id: head.workspace_id?,
                space_id: head.space_id,
                actor: head.actor?.actor(),
                run_id: head.run_id?,
                seq: head.seq,
                idempotency_key: head.idempotency_key,
            },
            content: content?,
        })
    });
    checks.finish(typed)
}

/// Checks the envelope and, where the type is known, the content by `content` and that nothing else stands there.
fn with_fields<T>(
    checks: &mut Checks,
    value: &Value,
    form: Form,
    content: impl FnOnce(&mut Checks, Object<'_, '_>, Head, EventType) -> Option<T>,
) -> Option<T> {
    let document = Field { value, place: Place::ROOT };
    let object = checks.object(&document)?;
    let version = checks.required(object, "v");
    if let Some(field) = version {
        checks.version(field, VERSION);
    }
    let event_type = checks.required(object, "type").and_then(|field| event_type(checks, field));
    let head = head(checks, object, form);
    let event_type = event_type?;
    let typed = content(checks, object, head, event_type);
    let fields = match event_type {
        EventType::QuestionAsk => &ask::FIELDS[..],
        EventType::QuestionAnswered => &answered::FIELDS[..],
    };
    checks.unknown_fields(object, &[&ENVELOPE, fields].concat());
    typed
}

fn event_type(checks: &mut Checks, field: Field<'_, '_>) -> Option<EventType> {
    let name = checks.string(field)?;
    let found = EventType::from_name(name);
    if found.is_none() {
        let meant = closest(name, &EventType::ALL.map(EventType::as_str)).unwrap_or_default();
        checks.fault(
            &field.place,
            FaultCode::UnknownType,
            format!("this protocol has no event of this type; did you mean `{meant}`?"),
        );
    }
    found
}

fn head(checks: &mut Checks, object: Object<'_, '_>, form: Form) -> Head {
    let id = checks.required(object, "id").and_then(|field| checks.id(field));
    let ts = written_by_chips(checks, object, "ts", form, Checks::time);
    let workspace_id = checks.required(object, "workspace_id").and_then(|field| checks.id(field));
    let space_id = checks.optional(object, "space_id").and_then(|field| checks.id(field));
    let run_id = checks.required(object, "run_id").and_then(|field| checks.id(field));
    let seq = checks.optional(object, "seq").and_then(|field| match form {
        Form::Stored => checks.seq(field),
        Form::Draft => {
            let message = "Chips assigns `seq`; leave it out of a write";
            checks.fault(&field.place, FaultCode::NotAllowed, message);
            None
        }
    });
    let idempotency_key = match form {
        Form::Draft => checks.required(object, "idempotency_key"),
        Form::Stored => checks.optional(object, "idempotency_key"),
    }
    .and_then(|field| checks.text(field, &IDEMPOTENCY_KEY).map(str::to_owned));
    let actor = checks.required(object, "actor").and_then(|field| actor(checks, field, form));
    Head { id, ts, workspace_id, space_id, run_id, seq, idempotency_key, actor }
}

/// A field that Chips writes: needed in the stored form; in a write it may be left out, and of what stands there only
/// the JSON type counts, since it is replaced.
pub(super) fn written_by_chips<T>(
    checks: &mut Checks,
    object: Object<'_, '_>,
    name: &str,
    form: Form,
    check: impl FnOnce(&mut Checks, Field<'_, '_>) -> Option<T>,
) -> Option<T> {
    match form {
        Form::Stored => checks.required(object, name).and_then(|field| check(checks, field)),
        Form::Draft => {
            if let Some(field) = checks.optional(object, name) {
                checks.string(field);
            }
            None
        }
    }
}

fn actor(checks: &mut Checks, field: Field<'_, '_>, form: Form) -> Option<Participant> {
    let object = checks.object(&field)?;
    let kind = checks.required(object, "kind").and_then(|field| {
        let kind = checks.word(field, &ParticipantKind::ALL.map(|kind| (kind.as_str(), kind)));
        if kind == Some(ParticipantKind::System) && form == Form::Draft {
            let message = "`system` is Chips itself; name the person, harness or agent that acts";
            checks.fault(&field.place, FaultCode::NotAllowed, message);
        }
        kind
    });
    let id = checks.required(object, "id").and_then(|field| participant(checks, field, kind));
    let harness_id = checks.optional(object, "harness_id").and_then(|field| match form {
        Form::Draft => checks.string(field).and(None),
        Form::Stored => {
            let harness_id: Option<HarnessId> = checks.id(field);
            if harness_id.is_some() && kind.is_some_and(|kind| kind != ParticipantKind::Agent) {
                let message = "only an agent speaks through a harness; leave `harness_id` out";
                checks.fault(&field.place, FaultCode::NotAllowed, message);
            }
            harness_id
        }
    });
    checks.unknown_fields(object, &["kind", "id", "harness_id"]);
    kind?;
    Some(match id? {
        ParticipantId::Person(id) => Participant::Person(id),
        ParticipantId::Harness(id) => Participant::Harness(id),
        ParticipantId::Agent(id) => Participant::Agent(id, harness_id),
        ParticipantId::System => Participant::System,
    })
}

/// The id of a participant of this kind; of any, where the kind could not be told.
fn participant(checks: &mut Checks, field: Field<'_, '_>, kind: Option<ParticipantKind>) -> Option<ParticipantId> {
    match kind {
        None => checks.id(field),
        Some(ParticipantKind::Person) => checks.id::<PersonId>(field).map(ParticipantId::Person),
        Some(ParticipantKind::Harness) => checks.id::<HarnessId>(field).map(ParticipantId::Harness),
        Some(ParticipantKind::Agent) => checks.id::<AgentId>(field).map(ParticipantId::Agent),
        Some(ParticipantKind::System) => {
            let system = checks.string(field)? == "system";
            if !system {
                checks.fault(&field.place, FaultCode::BadId, "the id of `system` is `system`");
            }
            system.then_some(ParticipantId::System)
        }
    }
}

/// The ask that a content belongs to.
pub(super) fn ask_id(checks: &mut Checks, object: Object<'_, '_>) -> Option<AskId> {
    checks.required(object, "ask_id").and_then(|field| checks.id(field))
}
