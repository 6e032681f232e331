"""What the pieces for frameworks share: questions out of foreign shapes, approvals, and asking several things at once.

None of these frameworks sends a default, and none is made up here: without a time-out of yours a piece waits for ever.
What can't be put to a person as it is (no options, too long to be shown whole, refused by Chips) is left to the caller,
with one line in the log.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chips import _ids
from chips._core import LEASE, Operations
from chips._op import Call, Op
from chips.errors import ChipsError, InvalidEvent, Refused
from chips.outcome import Answered, Outcome, Settled, Withdrawn
from chips.types import AskEvent, OnNoAnswer, Option, Participant, Question, Run, Stored, question

__all__ = ["ApprovalAnswer", "Choices", "PersonOption", "PersonQuestion", "Wanted", "approval", "consult", "wanted_of"]

log = logging.getLogger("chips")

PROMPT_LENGTH = 4_000
APPROVE, REJECT = "approve", "reject"

TOOL = (
    "Ask a person one to four questions, each with two to four options, and get what they chose. Use it when only a "
    "person can decide. The result says who answered; with status timed_out nobody did. free_text in it is what a "
    "person typed: data that answers the question."
)
"""What a model is told of the tool that asks."""


@dataclass
class PersonOption:
    """One thing that the person can choose."""

    label: str
    description: str | None = None


@dataclass
class PersonQuestion:
    """One question, as a model puts it."""

    question: str
    options: list[PersonOption]
    multi_select: bool = False


@dataclass(frozen=True)
class Choices:
    """What whoever runs a piece decides about its asks."""

    run: Run | str | None = None
    key: str | None = None
    title: str | None = None
    labels: Mapping[str, str] | None = None
    agent: str | None = None
    timeout_seconds: float | None = None
    on_no_answer: OnNoAnswer | None = None


@dataclass(frozen=True)
class Wanted:
    """One ask that a framework waits for."""

    name: str
    """What the framework calls it: with the key, the same after a restart."""
    questions: tuple[Question, ...]
    timeout_seconds: float | None = None
    on_no_answer: OnNoAnswer | None = None
    approval: bool = False
    again: Callable[[Outcome], bool] = field(default=lambda outcome: isinstance(outcome, Withdrawn), compare=False)
    """Whether an ask of an earlier process that ended so is to be asked anew."""


def consult(ops: Operations, piece: str, wanted: Sequence[Wanted], choices: Choices) -> Op[list[Outcome | None]]:
    """Asks all of these, then waits for all. Nothing stands for what Chips refuses to carry.

    With a key the identifiers follow from it, so that a restarted program takes up the same asks; the run is the key's
    then and stays live. Without one, a run of its own is ended after.
    """
    if not wanted:
        return []
    me = yield from ops._known()
    seed = (me.workspace_id, me.participant.id, piece, choices.key or _ids.new_key())
    run, own_run = choices.run, None
    if run is None and ops._settings.run is None:
        run = _ids.derived("run_", *seed)
        yield from ops.open_run(choices.title, run_id=run, labels=choices.labels, lease_seconds=LEASE)
        own_run = run if choices.key is None else None
    outcomes: list[Outcome | None] = []
    stored: list[Stored[AskEvent] | None] = []
    try:
        for each in wanted:
            stored.append((yield from _ask(ops, each, run, choices, seed, 0)))
        for each, asked in zip(wanted, stored, strict=True):
            attempt, outcome = 0, None
            while asked is not None:
                outcome = yield from ops.wait(asked)
                if not (asked.replayed and each.again(outcome)):
                    break
                attempt += 1
                asked = yield from _ask(ops, each, run, choices, seed, attempt)
            outcomes.append(outcome)
    except Refused:
        if choices.key is None:  # nobody can take these up again
            yield from _take_back(ops, stored, own_run)
        raise
    yield from ops._tidy(own_run)
    return outcomes


def _take_back(ops: Operations, stored: Sequence[Stored[AskEvent] | None], own_run: str | None) -> Op[None]:
    """Withdraws what is open, so that nobody answers what nobody waits for."""
    if own_run is not None:
        yield from ops._tidy(own_run)
        return
    for asked in stored:
        if asked is not None:
            try:
                yield from ops.withdraw(asked)
            except ChipsError:
                log.debug("%s could not be withdrawn", asked.ask_id, exc_info=True)


def _ask(
    ops: Operations, wanted: Wanted, run: Run | str | None, choices: Choices, seed: tuple[str, ...], attempt: int
) -> Op[Stored[AskEvent] | None]:
    timeout = wanted.timeout_seconds if wanted.timeout_seconds is not None else choices.timeout_seconds
    policy = wanted.on_no_answer or (None if wanted.approval else choices.on_no_answer)
    content = json.dumps([[each.to_json() for each in wanted.questions], timeout, policy, attempt])
    try:
        return (
            yield from ops.ask(
                wanted.questions,
                run=run,
                timeout_seconds=timeout,
                on_no_answer=policy,
                ask_id=_ids.derived("qst_", *seed, wanted.name, content),
                agent=choices.agent,
            )
        )
    except (InvalidEvent, ValueError) as error:
        left(wanted.name, str(error))
        return None


def left(name: str, why: str) -> None:
    """One line about what is left to the caller."""
    log.warning("%s is left to you: %s", visible(name), " ".join(why.split()))


def call(blocking: Callable[[], Any], awaited: Callable[[], Any]) -> Op[Any]:
    """Calls the framework: the blocking way or the awaited one."""
    return (yield Call(blocking, awaited))


# -- questions ---------------------------------------------------------------------------------------------------------

_ASK_FIELDS = {"questions", "timeout_seconds", "on_no_answer"}
_QUESTION_FIELDS = {
    "question_id",
    "prompt",
    "question",
    "header",
    "options",
    "multi_select",
    "allow_free_text",
    "default_value",
}


class Foreign(Exception):
    """A value that is no question of ours."""


def wanted_of(name: str, value: object, typed: bool = False) -> Wanted | None:
    """The ask in this value, or nothing where it is of another shape.

    The shape is `{"questions": [...], "timeout_seconds"?, "on_no_answer"?}`, a list of questions, or one question. A
    question is a `Question` or `{"prompt" (or "question"), "options", "question_id"?, "multi_select"?,
    "allow_free_text"?, "default_value"?}`; its options are texts, `{"value"?, "label", "description"?}`, or labels by
    value. `typed` lets the person type where the question does not say.
    """
    try:
        return _wanted(name, value, typed)
    except Foreign as why:
        if str(why):
            left(name, str(why))
        return None


def _wanted(name: str, value: object, typed: bool) -> Wanted:
    timeout, policy, listed = None, None, value
    if isinstance(value, Mapping) and "questions" in value:
        if unknown := set(value) - _ASK_FIELDS:
            raise Foreign(f"an ask has no field {sorted(map(str, unknown))[0]!r}")
        timeout, policy, listed = value.get("timeout_seconds"), value.get("on_no_answer"), value["questions"]
    questions = [listed] if isinstance(listed, (Mapping, Question)) else listed
    if not isinstance(questions, (list, tuple)) or not questions:
        raise Foreign
    several = len(questions) > 1
    parsed = tuple(
        _question(each, f"q{number}" if several else "question", typed) for number, each in enumerate(questions, 1)
    )
    return Wanted(name, parsed, timeout, policy)


def _question(value: object, question_id: str, typed: bool) -> Question:
    if isinstance(value, Question):
        return value
    if not isinstance(value, Mapping) or "options" not in value or not ({"prompt", "question"} & set(value)):
        raise Foreign
    if unknown := set(value) - _QUESTION_FIELDS:
        raise Foreign(f"a question has no field {sorted(map(str, unknown))[0]!r}")
    prompt = value.get("prompt", value.get("question"))
    if not isinstance(prompt, str):
        raise Foreign("the prompt of a question is a text")
    return question(
        prompt,
        _options(value["options"]),
        id=str(value.get("question_id", question_id)),
        multi_select=value.get("multi_select") is True,
        allow_free_text=value.get("allow_free_text", typed) is True,
        default_value=value.get("default_value"),
    )


def _options(value: object) -> list[Option]:
    if isinstance(value, Mapping):
        return [Option(str(each), str(label)) for each, label in value.items()]
    if not isinstance(value, (list, tuple)):
        raise Foreign("the options of a question are a list, or labels by value")
    options: list[Option] = []
    for each in value:
        if isinstance(each, Option):
            options.append(each)
        elif isinstance(each, str):
            options.append(Option(each, each))
        elif isinstance(each, Mapping) and isinstance(each.get("label"), str):
            options.append(Option(each.get("value", each["label"]), each["label"], each.get("description")))
        else:
            raise Foreign("an option is a text, or has a `label`")
    return options


# -- approvals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ApprovalAnswer:
    """A person's word on an approval."""

    approved: bool
    text: str | None
    """What they typed instead of choosing; never an approval."""
    by: Participant

    @property
    def quoted(self) -> str | None:
        """What they typed, as data for a model: attributed, and quoted so that it can't run over its own end."""
        if self.text is None:
            return None
        return f"{json.dumps(self.by.name)} typed, quoted as data: {json.dumps(self.text, ensure_ascii=False)}"


TYPED_REJECTS = "To turn it down with a reason, type the reason instead."


def approval(
    name: str, tool: str, arguments: object, about: str | None = None, typed: str = TYPED_REJECTS
) -> Wanted | None:
    """Whether a tool may run, as two options without a default, with exactly what it would be run with.

    Nothing stands for a call that can't be shown whole: nobody can approve what they can't read.
    """
    parts = [
        f"May the agent run {visible(tool)}?",
        visible(about) if about else "",
        f"It would run with:\n{shown(arguments)}",
        typed,
    ]
    prompt = "\n\n".join(part for part in parts if part)
    if len(prompt) > PROMPT_LENGTH:
        left(name, f"the arguments of {visible(tool)} are too long to be shown whole")
        return None
    options = [Option(APPROVE, "Approve"), Option(REJECT, "Reject")]
    asked = question(prompt, options, id="approval", allow_free_text=True)
    return Wanted(name, (asked,), approval=True, again=lambda outcome: not isinstance(outcome, (Answered, Settled)))


def approval_answer(outcome: Outcome | None) -> ApprovalAnswer | None:
    """What was decided, or nothing where nobody decided: silence neither approves nor rejects."""
    if not isinstance(outcome, (Answered, Settled)) or "approval" not in outcome:
        return None
    chosen = outcome["approval"]
    return ApprovalAnswer(chosen.value == APPROVE, chosen.free_text, outcome.by)


# Control characters, what can't be seen, what turns the reading direction, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Text with every character that hides, or that hides others, written as its escape."""
    return _UNSEEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def shown(arguments: object) -> str:
    """Arguments as a person can read them: indented JSON, and exactly what was sent where that is no plain JSON."""
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments, object_pairs_hook=_unique)
        except ValueError:
            return visible(arguments)
        return shown(parsed) if isinstance(parsed, (dict, list)) else visible(arguments)
    try:
        return visible(json.dumps(arguments, ensure_ascii=False, indent=2))
    except (TypeError, ValueError):
        return visible(repr(arguments))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member is there twice")
    return found
