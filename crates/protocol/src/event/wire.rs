//! The flat form of an event: envelope and content in one object.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Actor, Answer, Content, Envelope, Event, EventType, OnNoAnswer, Question, QuestionAnswered, QuestionAsk};
use crate::id::{AskId, EventId, ParticipantId, RunId, SpaceId, WorkspaceId};
use crate::object::Object;
use crate::time::Timestamp;

/// The protocol's major version, the `v` of every event.
pub(crate) const VERSION: u64 = 1;

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Envelope { id, ts, workspace_id, space_id, actor, run_id, seq, idempotency_key } = &self.envelope;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &VERSION)?;
        map.serialize_entry("type", self.content.event_type().as_str())?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("ts", ts)?;
        map.serialize_entry("workspace_id", workspace_id)?;
        entry_if_some(&mut map, "space_id", space_id.as_ref())?;
        map.serialize_entry("actor", actor)?;
        map.serialize_entry("run_id", run_id)?;
        entry_if_some(&mut map, "seq", seq.as_ref())?;
        entry_if_some(&mut map, "idempotency_key", idempotency_key.as_ref())?;
        match &self.content {
            Content::QuestionAsk(QuestionAsk { ask_id, questions, timeout_seconds, on_no_answer }) => {
                map.serialize_entry("ask_id", ask_id)?;
                map.serialize_entry("questions", questions)?;
                entry_if_some(&mut map, "timeout_seconds", timeout_seconds.as_ref())?;
                entry_if_some(&mut map, "on_no_answer", on_no_answer.as_ref())?;
            }
            Content::QuestionAnswered(QuestionAnswered { ask_id, answers, answered_by, answered_at, timed_out }) => {
                map.serialize_entry("ask_id", ask_id)?;
                map.serialize_entry("answers", answers)?;
                map.serialize_entry("answered_by", answered_by)?;
                map.serialize_entry("answered_at", answered_at)?;
                entry_if_some(&mut map, "timed_out", timed_out.as_ref())?;
            }
        }
        map.end()
    }
}

fn entry_if_some<M: SerializeMap>(
    map: &mut M,
    name: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

impl<'de> Deserialize<'de> for Event {
    /// Reads an event that was checked when it was written. Members that are not known are passed over, so that a
    /// reader outlives a protocol that grows; [`crate::validate::stored`] is for events that nobody has checked.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FlatEvent)
    }
}

struct FlatEvent;

macro_rules! members {
    ($($member:literal $name:ident: $read:ty => $keep:expr,)*) => {
        /// Every member that an event of any type may have, as far as it has been met.
        #[derive(Default)]
        struct Members { $($name: Option<$read>,)* }

        impl Members {
            fn take<'de, A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<(), A::Error> {
                match name {
                    $($member => {
                        if self.$name.is_some() {
                            return Err(A::Error::duplicate_field($member));
                        }
                        self.$name = Some($keep(members.next_value()?));
                    })*
                    _ => { members.next_value::<IgnoredAny>()?; }
                }
                Ok(())
            }
        }
    };
}

/// A list of objects, for [`members`].
fn objects<T>(list: Vec<Object<T>>) -> Vec<T> {
    list.into_iter().map(|item| item.0).collect()
}

fn object<T>(one: Object<T>) -> T {
    one.0
}

use std::convert::identity as same;

members! {
    "v" v: u64 => same,
    "type" event_type: EventType => same,
    "id" id: EventId => same,
    "ts" ts: Timestamp => same,
    "workspace_id" workspace_id: WorkspaceId => same,
    "space_id" space_id: SpaceId => same,
    "actor" actor: Actor => object,
    "run_id" run_id: RunId => same,
    "seq" seq: u64 => same,
    "idempotency_key" idempotency_key: String => same,
    "ask_id" ask_id: AskId => same,
    "questions" questions: Vec<Question> => objects,
    "timeout_seconds" timeout_seconds: serde_json::Number => same,
    "on_no_answer" on_no_answer: OnNoAnswer => same,
    "answers" answers: Vec<Answer> => objects,
    "answered_by" answered_by: ParticipantId => same,
    "answered_at" answered_at: Timestamp => same,
    "timed_out" timed_out: bool => same,
}

fn needed<T, E: serde::de::Error>(name: &'static str, member: Option<T>) -> Result<T, E> {
    member.ok_or_else(|| E::missing_field(name))
}

impl<'de> Visitor<'de> for FlatEvent {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            members.take(&name, &mut map)?;
        }
        if needed::<_, A::Error>("v", members.v)? != VERSION {
            return Err(A::Error::custom("an event of another protocol version than 1"));
        }
        let event_type = needed("type", members.event_type)?;
        let envelope = Envelope {
            id: needed("id", members.id)?,
            ts: needed("ts", members.ts)?,
            workspace_id: needed("workspace_id", members.workspace_id)?,
            space_id: members.space_id,
            actor: needed("actor", members.actor)?,
            run_id: needed("run_id", members.run_id)?,
            seq: members.seq,
            idempotency_key: members.idempotency_key,
        };
        let ask_id = needed("ask_id", members.ask_id)?;
        let content = match event_type {
            EventType::QuestionAsk => Content::QuestionAsk(QuestionAsk {
                ask_id,
                questions: needed("questions", members.questions)?,
                timeout_seconds: members.timeout_seconds,
                on_no_answer: members.on_no_answer,
            }),
            EventType::QuestionAnswered => Content::QuestionAnswered(QuestionAnswered {
                ask_id,
                answers: needed("answers", members.answers)?,
                answered_by: needed("answered_by", members.answered_by)?,
                answered_at: needed("answered_at", members.answered_at)?,
                timed_out: members.timed_out,
            }),
        };
        Ok(Event { envelope, content })
    }
}
