"""Pydantic AI: puts deferred tool calls to people, and gives the run what they decided.

    agent = Agent(model, tools=[chips.pydantic_ai.ask_person], output_type=[str, DeferredToolRequests])
    result = chips.pydantic_ai.run_sync(people, agent, "Ship order 4711")

Calls that need approval (`ApprovalRequired`, `requires_approval=True`) become two options without a default. Calls
that a tool deferred as questions (`ask_person`, or `CallDeferred(kind="question")` of your own whose arguments or
metadata hold questions) become asks. Any other deferred call is left to you.

Needs `chips-client[pydantic-ai]`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chips._clients import AsyncClient, Client
from chips._core import Operations
from chips._op import Op
from chips._pieces import (
    TOOL,
    ApprovalAnswer,
    Choices,
    PersonOption,
    PersonQuestion,
    Wanted,
    approval,
    approval_answer,
    call,
    consult,
    wanted_of,
)
from chips.outcome import Outcome, Withdrawn
from chips.types import OnNoAnswer, Run

if TYPE_CHECKING:
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.run import AgentRunResult

__all__ = ["PersonOption", "PersonQuestion", "answer", "answer_sync", "ask_person", "handler", "run", "run_sync"]

PIECE = "pydantic-ai"


def ask_person(questions: list[PersonQuestion]) -> Any:
    from pydantic_ai.exceptions import CallDeferred

    raise CallDeferred(kind="question")


ask_person.__doc__ = TOOL


def answer_sync(
    client: Client,
    requests: DeferredToolRequests,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> DeferredToolResults:
    """Puts these deferred calls to people and returns what they decided, `answered_by` included.

    A call that could not be put to people, or was not decided within `timeout_seconds`, has no result: pass the results
    to `requests.remaining(...)` to see which. Without `timeout_seconds` it waits for ever. A question that timed out
    has a result that says so; an approval that timed out has none. `key` (a conversation's id, say) makes them the same
    asks after a restart of your program: the tool calls' ids have to be unique under it.
    """
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)
    return client._drive(_answer(client._ops, requests, choices))


async def answer(
    client: AsyncClient,
    requests: DeferredToolRequests,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> DeferredToolResults:
    """`answer_sync`, awaited."""
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)
    return await client._drive(_answer(client._ops, requests, choices))


def handler(
    client: AsyncClient,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> Callable[[RunContext[Any], DeferredToolRequests], Awaitable[DeferredToolResults | None]]:
    """A handler for Pydantic AI's `HandleDeferredToolCalls`: the run goes on by itself once people have decided.

    agent = Agent(model, capabilities=[HandleDeferredToolCalls(handler=chips.pydantic_ai.handler(people))])
    """
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)

    async def handle(context: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
        results = await client._drive(_answer(client._ops, requests, choices))
        return results if results.calls or results.approvals else None

    return handle


def run_sync(
    client: Client,
    agent: Agent[Any, Any],
    prompt: Any = None,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
    **options: Any,
) -> AgentRunResult[Any]:
    """Runs the agent, puts its deferred calls to people, and so on to its end. `options` go to `agent.run_sync`.

    The agent's `output_type` has to include `DeferredToolRequests`. Where a call could not be put to people, or was not
    decided, the turn's requests are the result's output.
    """
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)
    return client._drive(_run(client._ops, agent, prompt, choices, options))


async def run(
    client: AsyncClient,
    agent: Agent[Any, Any],
    prompt: Any = None,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
    **options: Any,
) -> AgentRunResult[Any]:
    """`run_sync`, awaited: with `agent.run`."""
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds, on_no_answer)
    return await client._drive(_run(client._ops, agent, prompt, choices, options))


def _run(
    ops: Operations, agent: Agent[Any, Any], prompt: Any, choices: Choices, options: Mapping[str, Any]
) -> Op[AgentRunResult[Any]]:
    from pydantic_ai import DeferredToolRequests

    said, following = prompt, dict(options)
    while True:
        asked, passed = said, following
        result = yield from call(lambda: agent.run_sync(asked, **passed), lambda: agent.run(asked, **passed))
        if not isinstance(result.output, DeferredToolRequests):
            return result  # type: ignore[no-any-return]
        # A turn is resumed whole: where a call can't be put to people, nobody is asked about the others.
        if len(_wanted(result.output)) < len(result.output.calls) + len(result.output.approvals):
            return result  # type: ignore[no-any-return]
        results = yield from _answer(ops, result.output, choices)
        if result.output.remaining(results) is not None:
            return result  # type: ignore[no-any-return]
        said = None
        following = {**options, "message_history": result.all_messages(), "deferred_tool_results": results}


def _answer(ops: Operations, requests: DeferredToolRequests, choices: Choices) -> Op[DeferredToolResults]:
    from pydantic_ai import DeferredToolResults

    wanted = _wanted(requests)
    approvals = {part.tool_call_id for part in requests.approvals}
    outcomes = yield from consult(ops, PIECE, list(wanted.values()), choices)
    results = DeferredToolResults()
    for call_id, outcome in zip(wanted, outcomes, strict=True):
        if outcome is None:
            continue
        if call_id in approvals:
            decided = approval_answer(outcome)
            if decided is None:
                continue
            results.approvals[call_id] = _decision(decided)
        elif isinstance(outcome, Withdrawn):
            continue
        else:
            results.calls[call_id] = outcome.as_data()
        results.answered_by[call_id] = outcome.by.id
    return results


def _wanted(requests: DeferredToolRequests) -> dict[str, Wanted]:
    """What can be put to people, by the id of its call."""
    wanted = {part.tool_call_id: approval(part.tool_call_id, part.tool_name, part.args_as_dict()) for part in requests.approvals}
    wanted |= {part.tool_call_id: _question(requests, part) for part in requests.calls}
    return {call_id: each for call_id, each in wanted.items() if each is not None}


def _question(requests: DeferredToolRequests, part: ToolCallPart) -> Wanted | None:
    """The ask in a deferred call: in the metadata that its tool gave it, else in its arguments."""
    metadata = requests.metadata.get(part.tool_call_id) or {}
    if "questions" in metadata:
        return wanted_of(part.tool_call_id, {"questions": metadata["questions"]}, typed=True)
    if requests.kind(part.tool_call_id) != "question":
        return None
    return wanted_of(part.tool_call_id, part.args_as_dict(), typed=True)


def _decision(decided: ApprovalAnswer) -> Any:
    from pydantic_ai import ToolApproved, ToolDenied

    if decided.approved:
        return ToolApproved()
    return ToolDenied(f"{decided.by.name} turned this tool call down." + (f" {decided.quoted}" if decided.quoted else ""))
