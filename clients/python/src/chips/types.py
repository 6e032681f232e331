"""What goes over the wire, as frozen dataclasses. Names are the protocol's.

Replies may gain fields: those that a class does not know are left out of it and stay in `raw` where it has one. Words
of a closed list are `Literal`s; a word that this version does not know yet comes through as it is.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from chips import _decode

__all__ = [
    "Actor",
    "Answer",
    "Answers",
    "AnsweredEvent",
    "Ask",
    "AskEvent",
    "AskRef",
    "AskState",
    "AsksPage",
    "Budget",
    "Event",
    "EventType",
    "EventsPage",
    "Fault",
    "FaultCode",
    "LateAnswer",
    "Me",
    "OnNoAnswer",
    "Option",
    "OtherEvent",
    "Participant",
    "ParticipantKind",
    "Position",
    "Problem",
    "ProblemCode",
    "Question",
    "Run",
    "RunState",
    "SpaceName",
    "Stored",
    "Tier",
    "question",
]

EventType = Literal["question.ask", "question.answered"]
ParticipantKind = Literal["person", "harness", "agent", "system"]
AskState = Literal["open", "answered", "timed_out", "settled", "withdrawn"]
Tier = Literal["time_sensitive", "active", "passive"]
OnNoAnswer = Literal["use_default", "cancel", "continue"]
RunState = Literal["live", "ended"]
ProblemCode = Literal[
    "malformed_json",
    "duplicate_key",
    "too_deep",
    "bad_query",
    "token_in_query",
    "unauthenticated",
    "wrong_sender",
    "actor_mismatch",
    "not_found",
    "method_not_allowed",
    "already_closed",
    "event_id_conflict",
    "ask_id_conflict",
    "run_id_conflict",
    "run_ended",
    "cursor_ahead",
    "log_changed",
    "cursor_gone",
    "too_large",
    "unsupported_media_type",
    "misdirected",
    "invalid_event",
    "over_budget",
    "rate_limited",
    "unavailable",
]
FaultCode = Literal[
    "required",
    "unknown_field",
    "wrong_type",
    "bad_id",
    "unsupported_version",
    "unknown_type",
    "unknown_value",
    "too_few",
    "too_many",
    "too_long",
    "empty",
    "duplicate",
    "out_of_range",
    "not_an_option",
    "not_allowed",
    "no_default",
    "forbidden_character",
    "unknown_run",
    "unknown_space",
    "mismatch",
]


@dataclass(frozen=True)
class Option:
    """One thing that a person can tap."""

    value: str
    """What comes back."""
    label: str
    """What the person taps."""
    description: str | None = None
    """What choosing it means."""

    def to_json(self) -> dict[str, object]:
        """The option on the wire."""
        return _without_none(value=self.value, label=self.label, description=self.description)


@dataclass(frozen=True)
class Question:
    """One question of an ask, with two to four options."""

    question_id: str
    """Stable and unique in the ask, so that the answer lands on the right question."""
    prompt: str
    """What is being asked."""
    options: tuple[Option, ...]
    """Two to four."""
    multi_select: bool = False
    """Whether more than one option may be chosen."""
    allow_free_text: bool = False
    """Whether the person may type instead."""
    default_value: str | None = None
    """What you will take if nobody answers. Its presence makes the notification quieter."""

    def to_json(self) -> dict[str, object]:
        """The question on the wire."""
        return _without_none(
            question_id=self.question_id,
            prompt=self.prompt,
            options=[option.to_json() for option in self.options],
            multi_select=self.multi_select or None,
            allow_free_text=self.allow_free_text or None,
            default_value=self.default_value,
        )


def question(
    prompt: str,
    options: Mapping[str, str] | Iterable[str | Option],
    *,
    id: str = "question",
    multi_select: bool = False,
    allow_free_text: bool = False,
    default_value: str | None = None,
) -> Question:
    """A question in one line.

    `options` are labels by value, or a list of `Option`s and texts (a text is both value and label). Give each an `id`
    where an ask has several.
    """
    if isinstance(options, Mapping):
        listed = [Option(value, label) for value, label in options.items()]
    else:
        listed = [Option(each, each) if isinstance(each, str) else each for each in options]
    return Question(id, prompt, tuple(listed), multi_select, allow_free_text, default_value)


@dataclass(frozen=True)
class Answer:
    """The answer to one question, as it is on the wire."""

    question_id: str
    """The question that this answers."""
    values: tuple[str, ...]
    """The chosen option values; empty where there is only text, or none of a multi-select's options is wanted."""
    free_text: str | None = None
    """What the person typed. Data, whatever it says: never an instruction, a template or a command."""

    def to_json(self) -> dict[str, object]:
        """The answer on the wire."""
        return _without_none(question_id=self.question_id, values=list(self.values), free_text=self.free_text)


@dataclass(frozen=True)
class Actor:
    """The participant that an event is attributed to."""

    kind: ParticipantKind
    id: str
    """The participant's id, or `system` for Chips."""
    harness_id: str | None = None
    """For an agent: the harness that it speaks through."""


@dataclass(frozen=True)
class Participant:
    """A participant with the name that people know."""

    kind: ParticipantKind
    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Event:
    """What every event of the log carries. Each is an `AskEvent`, an `AnsweredEvent` or an `OtherEvent`."""

    v: int
    """The protocol's major version."""
    type: EventType
    id: str
    """The event's own id, stable across a retry."""
    ts: datetime.datetime
    """When it happened, by Chips' clock."""
    workspace_id: str
    actor: Actor
    space_id: str | None = None
    seq: int | None = None
    """The place in the workspace's log, from 1 and without gaps."""
    idempotency_key: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The whole event as it came."""

    @classmethod
    def from_json(cls, value: object, place: str = "") -> Event:
        """The event of this JSON, as the class of its type. Raises `ValueError`."""
        if not isinstance(value, dict):
            raise _decode.Mismatch(place, "an event", value)
        name = value.get("type")
        kind: type[Event] = OtherEvent
        if name == "question.ask":
            kind = AskEvent
        elif name == "question.answered":
            kind = AnsweredEvent
        if not issubclass(kind, cls):
            raise _decode.Mismatch(f"{place}/type", f"the type of {cls.__name__}", name)
        event = _decode._object(kind, value, place)
        assert isinstance(event, Event)
        return event


@dataclass(frozen=True, kw_only=True)
class AskEvent(Event):
    """`question.ask`: a harness asks."""

    run_id: str
    ask_id: str
    questions: tuple[Question, ...]
    timeout_seconds: float | None = None
    """How long to wait for an answer; absent: until answered."""
    on_no_answer: OnNoAnswer | None = None
    """What the harness will do if the time-out passes."""

    def question(self, question_id: str) -> Question:
        """The question with this id. Raises `KeyError`."""
        for each in self.questions:
            if each.question_id == question_id:
                return each
        raise KeyError(question_id)


@dataclass(frozen=True, kw_only=True)
class AnsweredEvent(Event):
    """`question.answered`: the chosen options or free text, or a note that the time-out passed."""

    run_id: str
    ask_id: str
    answers: tuple[Answer, ...]
    answered_by: str
    """Who answered, or `system` on a time-out."""
    answered_at: datetime.datetime
    timed_out: bool = False
    """True when the time-out passed, and `answers` are the defaults that were taken rather than anybody's choice."""


@dataclass(frozen=True, kw_only=True)
class OtherEvent(Event):
    """An event of a type that this version does not know. Everything is in `raw`."""

    run_id: str | None = None


@dataclass(frozen=True)
class LateAnswer:
    """A person's answer that came after the ask was closed. It decides nothing."""

    by: str
    at: datetime.datetime
    answers: tuple[Answer, ...]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """An ask as it stands."""

    ask_id: str
    state: AskState
    tier: Tier
    """How loudly people are told."""
    deadline: datetime.datetime | None = None
    """When Chips closes it by itself, or nothing where it waits until it is answered."""
    asker: Participant
    answerer: Participant | None = None
    """Who closed it, or nothing while it is open."""
    asker_gone: bool
    """The lease of its run has lapsed: still answerable, but perhaps nobody waits any more."""
    reachable: bool
    """False where nobody could be told."""
    ask: AskEvent
    answer: AnsweredEvent | None = None
    option_labels: Mapping[str, Mapping[str, str]]
    """For each question, the label of each value."""
    late_answers: tuple[LateAnswer, ...]
    delivered_at: datetime.datetime | None = None
    """When the answer first went out to the harness."""
    acknowledged_at: datetime.datetime | None = None
    """When the harness said that it has acted on the answer."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """The run that asked."""
        return self.ask.run_id

    @property
    def closed(self) -> bool:
        """Whether it is decided, one way or another, for ever."""
        return self.state != "open"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One piece of work of a harness."""

    run_id: str
    harness_id: str
    space_id: str | None = None
    title: str | None = None
    url: str | None = None
    labels: Mapping[str, str]
    parent_run_id: str | None = None
    state: RunState
    started_at: datetime.datetime
    ended_at: datetime.datetime | None = None
    lease_seconds: float | None = None
    """How long the harness may be silent before its open asks say `asker_gone`."""
    lease_until: datetime.datetime | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class EventsPage:
    """A page of the log."""

    events: tuple[Event, ...]
    head: int
    """The `seq` of the last event in the workspace's log, 0 where it is empty."""
    log: str
    """The history of the log that the numbers belong to; a restore changes it."""


@dataclass(frozen=True)
class Position:
    """A place in the log: hand it to `stream` to go on from there."""

    seq: int
    log: str


@dataclass(frozen=True)
class AsksPage:
    """A page of asks."""

    asks: tuple[Ask, ...]
    head: int
    next: str | None = None
    """What to send as `before` for the next page, or nothing."""


@dataclass(frozen=True)
class SpaceName:
    """A space's id and name."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much of a harness's budget is used."""

    open: int
    """Open asks now."""
    open_limit: int | None = None
    hour: int
    """Asks in the last 3,600 seconds."""
    hour_limit: int | None = None


@dataclass(frozen=True)
class Me:
    """Who a token speaks for."""

    workspace_id: str
    participant: Participant
    spaces: tuple[SpaceName, ...]
    budget: Budget | None = None
    """For a harness."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with an event."""

    pointer: str
    """Where: a JSON pointer (RFC 6901)."""
    code: FaultCode
    message: str
    """What is wrong and what to do, for people."""


@dataclass(frozen=True)
class Problem:
    """A refusal, as Chips said it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: ProblemCode
    errors: tuple[Fault, ...] = ()
    """Every fault, for `invalid_event`."""
    answer: AnsweredEvent | None = None
    """The event that closed the ask, for `already_closed`."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class Stored(Generic[E]):
    """What a write came to."""

    event: E
    """The event in the log."""
    replayed: bool = False
    """The same write had been taken before: nothing was appended now."""
    body_differs: bool = False
    """It was a replay by its key, though what it said was something else. `event` is what counts."""

    @property
    def ask_id(self) -> str:
        """The ask that the event belongs to."""
        ask_id = getattr(self.event, "ask_id", None)
        assert isinstance(ask_id, str)
        return ask_id


AskRef: TypeAlias = "Ask | AskEvent | Stored[AskEvent] | str"
"""An ask, by whatever names it."""


def _without_none(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}


Answers: TypeAlias = "Sequence[Answer] | Mapping[str, str | Sequence[str] | Answer]"
"""Answers as a list, or by question id: a value, several values, or an `Answer`."""


def answers_of(answers: Answers) -> list[Answer]:
    """Answers in either spelling: a list of them, or values by question id."""
    if not isinstance(answers, Mapping):
        return list(answers)
    spelled: list[Answer] = []
    for question_id, given in answers.items():
        if isinstance(given, Answer):
            spelled.append(Answer(question_id, given.values, given.free_text))
        else:
            spelled.append(Answer(question_id, (given,) if isinstance(given, str) else tuple(given)))
    return spelled
