"""LangGraph: puts what a graph waits for with `interrupt()` to people, and resumes it with what they chose.

    result = chips.langgraph.drive(people, graph, {"order": 4711}, {"configurable": {"thread_id": "order-4711"}})

Three shapes of `interrupt()` values are put to people: questions (see `ask_people`), and both shapes of LangChain's
`HumanInTheLoopMiddleware` (all tool calls of a turn at once, or one at a time). Anything else stays pending and is
handed back to you. A thread takes up its own asks after a restart of your program: there is never a second card.

Needs `chips-client[langgraph]`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chips._clients import AsyncClient, Client
from chips._core import Operations
from chips._op import Op
from chips._pieces import TYPED_REJECTS, Choices, Wanted, approval, approval_answer, call, consult, left, wanted_of
from chips.outcome import Outcome, Withdrawn
from chips.types import OnNoAnswer, Question, Run

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import Command, Interrupt

__all__ = ["adrive", "aresume", "ask_people", "drive", "resume"]

PIECE = "langgraph"


def ask_people(
    questions: Question | Sequence[Question],
    *,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> dict[str, Any]:
    """Asks from inside a node: pauses the graph, and returns the outcome as data once it is resumed.

    `data["status"]` is `answered`, `settled` or `timed_out`; `data["answers"]` holds what was chosen, by value and
    label; on a time-out it is empty, and `defaults_taken` says what the questions' own defaults were.
    """
    from langgraph.types import interrupt

    listed = [questions] if isinstance(questions, Question) else list(questions)
    value: dict[str, Any] = {"questions": [each.to_json() for each in listed]}
    if timeout_seconds is not None:
        value["timeout_seconds"] = timeout_seconds
    if on_no_answer is not None:
        value["on_no_answer"] = on_no_answer
    data: dict[str, Any] = interrupt(value)
    return data


def drive(
    client: Client,
    graph: Pregel[Any, Any, Any, Any],
    input: Any,
    config: RunnableConfig,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
    **invoke: Any,
) -> Any:
    """Invokes the graph, asks people whatever it waits for, resumes it, and so on to its end. Returns its result.

    With `None` for `input` it goes on with a thread that waits already. What could not be put to people, or was not
    decided within `timeout_seconds`, is still in the result's `__interrupt__`. Without `timeout_seconds` it waits for
    ever. The asks belong to `run`, else to a run of the thread. `key` stands for the thread where its `thread_id` is
    not unique among your programs. `invoke` goes to `graph.invoke`.
    """
    choices = Choices(run, key or _thread(config), title, labels, as_agent, timeout_seconds, on_no_answer)
    return client._drive(_drive(client._ops, graph, input, config, choices, invoke))


async def adrive(
    client: AsyncClient,
    graph: Pregel[Any, Any, Any, Any],
    input: Any,
    config: RunnableConfig,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
    **invoke: Any,
) -> Any:
    """`drive`, awaited: with `graph.ainvoke`."""
    choices = Choices(run, key or _thread(config), title, labels, as_agent, timeout_seconds, on_no_answer)
    return await client._drive(_drive(client._ops, graph, input, config, choices, invoke))


def resume(
    client: Client,
    interrupts: Sequence[Interrupt[Any]],
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> Command[Any] | None:
    """Puts these interrupts to people and returns the `Command` that resumes the graph, for whoever drives it themselves.

    Nothing where none of them could be put to people, or none was decided. `key` (a thread's id, say) makes them the
    same asks after a restart of your program.
    """
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)
    return client._drive(_resume(client._ops, interrupts, choices, Counter(), set()))


async def aresume(
    client: AsyncClient,
    interrupts: Sequence[Interrupt[Any]],
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> Command[Any] | None:
    """`resume`, awaited."""
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)
    return await client._drive(_resume(client._ops, interrupts, choices, Counter(), set()))


def _thread(config: RunnableConfig) -> str:
    thread = config.get("configurable", {}).get("thread_id")
    if thread is None:
        raise ValueError("a graph that waits needs a checkpointer and a `thread_id` in its config")
    return str(thread)


def _drive(
    ops: Operations,
    graph: Pregel[Any, Any, Any, Any],
    input: Any,
    config: RunnableConfig,
    choices: Choices,
    invoke: Mapping[str, Any],
) -> Op[Any]:
    asked: Counter[str] = Counter()
    given_up: set[str] = set()
    result: Any = None
    interrupts: Sequence[Interrupt[Any]] = ()
    following: Any = input
    if input is None:
        state = yield from call(lambda: graph.get_state(config), lambda: graph.aget_state(config))
        interrupts, result = state.interrupts, {**_values(state.values), "__interrupt__": list(state.interrupts)}
        following = yield from _resume(ops, interrupts, choices, asked, given_up)
        if interrupts and following is None:
            return result
    while True:
        step = following
        result = yield from call(
            lambda: graph.invoke(step, config, **invoke), lambda: graph.ainvoke(step, config, **invoke)
        )
        interrupts = _interrupts(result)
        following = yield from _resume(ops, interrupts, choices, asked, given_up)
        if following is None:
            return result


def _values(values: Any) -> Mapping[str, Any]:
    return values if isinstance(values, Mapping) else {}


def _interrupts(result: Any) -> Sequence[Interrupt[Any]]:
    """What a result waits for, in both forms that `invoke` returns."""
    if isinstance(result, Mapping):
        return tuple(result.get("__interrupt__", ()))
    return tuple(getattr(result, "interrupts", ()))


def _resume(
    ops: Operations,
    interrupts: Sequence[Interrupt[Any]],
    choices: Choices,
    asked: Counter[str],
    given_up: set[str],
) -> Op[Command[Any] | None]:
    """Asks for all of these; `asked` counts how often each was answered here, `given_up` names those left alone."""
    pending: list[tuple[str, _Pending]] = []
    for interrupt in interrupts:
        # Older versions give a second interrupt of a task the first one's id: the count tells them apart.
        name = f"{interrupt.id}#{asked[interrupt.id]}"
        if name not in given_up:
            found = _pending(name, interrupt)
            if found is None:
                given_up.add(name)
            else:
                pending.append((name, found))
    outcomes = iter((yield from consult(ops, PIECE, [each for _, found in pending for each in found.wanted], choices)))
    values: dict[str, Any] = {}
    for name, found in pending:
        value = found.value([next(outcomes) for _ in found.wanted])
        if value is None:
            given_up.add(name)
        else:
            values[found.id] = value
            asked[found.id] += 1
    if not values:
        return None
    from langgraph.types import Command

    return Command(resume=values)


@dataclass(frozen=True)
class _Pending:
    """An interrupt that can be put to people."""

    id: str
    wanted: tuple[Wanted, ...]
    value: Callable[[Sequence[Outcome | None]], Any]
    """What to resume it with, or nothing where nobody decided."""


def _pending(name: str, interrupt: Interrupt[Any]) -> _Pending | None:
    value = interrupt.value
    if isinstance(value, Mapping) and value.get("type") == "tool_approval":
        held = _approval(name, value, _decisions(interrupt.response_schema))
        if held is None:
            return None
        return _Pending(interrupt.id, (held.wanted,), lambda outcomes: held.decision(outcomes[0]))
    if isinstance(value, Mapping) and {"action_requests", "review_configs"} <= set(value):
        allowed = {each["action_name"]: each["allowed_decisions"] for each in value["review_configs"]}
        requests = [
            _approval(f"{name}/{index}", each, allowed.get(each["name"], ()))
            for index, each in enumerate(value["action_requests"])
        ]
        return _all_of(interrupt.id, requests)
    asked = wanted_of(name, value)
    if asked is None:
        left(f"interrupt {interrupt.id}", "its value is neither a question nor an approval that fits two options")
        return None
    return _Pending(interrupt.id, (asked,), lambda outcomes: _data(outcomes[0]))


def _data(outcome: Outcome | None) -> dict[str, Any] | None:
    return None if outcome is None or isinstance(outcome, Withdrawn) else outcome.as_data()


@dataclass(frozen=True)
class _Approval:
    """A tool call that LangChain holds back."""

    wanted: Wanted
    responds: bool
    """Whether text takes the tool's place, rather than turn the call down."""

    def decision(self, outcome: Outcome | None) -> dict[str, Any] | None:
        """The decision in LangChain's words, or nothing where nobody decided."""
        answer = approval_answer(outcome)
        if answer is None:
            return None
        if answer.approved:
            return {"type": "approve"}
        if answer.quoted is None:
            return {"type": "reject"}
        return {"type": "respond" if self.responds else "reject", "message": answer.quoted}


def _approval(name: str, request: Mapping[str, Any], allowed: Sequence[str]) -> _Approval | None:
    """One held tool call, or nothing where approving and rejecting are not both allowed."""
    tool, arguments, about = str(request.get("name")), request.get("args"), request.get("description")
    if not {"approve", "reject"} <= set(allowed):
        left(name, f"{tool} can't be both approved and rejected: {', '.join(allowed) or 'nothing'} is allowed")
        return None
    if isinstance(about, str) and str(arguments) in about:
        about = None  # LangChain's own text says no more than what is shown anyway
    responds = "respond" in allowed
    typed = "To answer in the tool's place, type what it should say instead." if responds else TYPED_REJECTS
    wanted = approval(name, tool, arguments, about, typed)
    return None if wanted is None else _Approval(wanted, responds)


def _all_of(interrupt: str, approvals: Sequence[_Approval | None]) -> _Pending | None:
    """All tool calls of a turn: they are decided together or not at all."""
    whole = [each for each in approvals if each is not None]
    if len(whole) < len(approvals):
        return None

    def value(outcomes: Sequence[Outcome | None]) -> dict[str, Any] | None:
        decisions = [each.decision(outcome) for each, outcome in zip(whole, outcomes, strict=True)]
        return None if None in decisions else {"decisions": decisions}

    return _Pending(interrupt, tuple(each.wanted for each in whole), value)


def _decisions(schema: Any) -> list[str]:
    """The decisions that a schema of LangChain's allows."""
    if not isinstance(schema, Mapping):
        return []
    definitions = schema.get("$defs", {})
    branches = [definitions.get(str(each.get("$ref")).rpartition("/")[2], each) for each in schema.get("oneOf", [schema])]
    return [str(branch.get("properties", {}).get("type", {}).get("const")) for branch in branches]
