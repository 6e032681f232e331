"""OpenAI Agents: puts tool calls that need approval to people, and gives models a tool that asks.

    result = await chips.openai_agents.run(people, agent, "Ship order 4711")

A tool with `needs_approval` becomes two options without a default; nobody's silence approves or rejects. Questions are
asked with an ordinary tool: `Agent(tools=[chips.openai_agents.ask_person(people)])`.

Needs `chips-client[openai-agents]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chips._clients import AsyncClient, Client
from chips._core import Operations
from chips._op import Op
from chips._pieces import (
    TOOL,
    Choices,
    PersonOption,
    PersonQuestion,
    approval,
    approval_answer,
    call,
    consult,
    visible,
    wanted_of,
)
from chips.types import OnNoAnswer, Run

if TYPE_CHECKING:
    from agents import Agent, FunctionTool, RunResult, RunState
    from agents.items import ToolApprovalItem

__all__ = ["PersonOption", "PersonQuestion", "ask_person", "decide", "decide_sync", "run", "run_sync"]

PIECE = "openai-agents"


def run_sync(
    client: Client,
    agent: Agent[Any],
    input: Any,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    **options: Any,
) -> RunResult:
    """Runs the agent, puts each tool call that needs approval to people, and so on to its end.

    `options` go to `Runner.run_sync`. What could not be put to people, or was not decided within `timeout_seconds`, is
    still in the result's `interruptions`. Without `timeout_seconds` it waits for ever. `key` (a conversation's id, say)
    makes them the same asks after a restart of your program: the tool calls' ids have to be unique under it.
    """
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds)
    return client._drive(_run(client._ops, agent, input, choices, options))


async def run(
    client: AsyncClient,
    agent: Agent[Any],
    input: Any,
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    **options: Any,
) -> RunResult:
    """`run_sync`, awaited: with `Runner.run`."""
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds)
    return await client._drive(_run(client._ops, agent, input, choices, options))


def decide_sync(
    client: Client,
    state: RunState[Any],
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
) -> int:
    """Approves or rejects what this state waits for, as people decide, for whoever drives the agent themselves.

    Returns how many were decided; what was not stays in the state's interruptions.
    """
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds)
    return client._drive(_decide(client._ops, state, choices, set()))


async def decide(
    client: AsyncClient,
    state: RunState[Any],
    *,
    run: Run | str | None = None,
    key: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
) -> int:
    """`decide_sync`, awaited."""
    choices = Choices(run, key, title, labels, as_agent, timeout_seconds)
    return await client._drive(_decide(client._ops, state, choices, set()))


def ask_person(
    client: AsyncClient,
    *,
    run: Run | str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    as_agent: str | None = None,
    timeout_seconds: float | None = None,
    on_no_answer: OnNoAnswer | None = None,
) -> FunctionTool:
    """A tool with which a model asks people, and waits for them as long as it takes."""
    from agents import function_tool

    choices = Choices(run, None, title, labels, as_agent, timeout_seconds, on_no_answer)

    async def ask_person(questions: list[PersonQuestion]) -> str:
        listed = [
            {
                "prompt": each.question,
                "options": [{"label": option.label, "description": option.description} for option in each.options],
                "multi_select": each.multi_select,
            }
            for each in questions
        ]
        wanted = wanted_of("ask_person", listed, typed=True)
        if wanted is None:
            return json.dumps({"status": "refused", "note": "ask one to four questions"})
        (outcome,) = await client._drive(consult(client._ops, PIECE, [wanted], choices))
        if outcome is None:
            return json.dumps({"status": "refused", "note": REFUSED})
        return json.dumps(outcome.as_data(), ensure_ascii=False)

    ask_person.__doc__ = TOOL
    return function_tool(ask_person)


REFUSED = "Nobody was asked. One to four questions, each with two to four options whose labels differ and are not empty."


def _run(
    ops: Operations, agent: Agent[Any], input: Any, choices: Choices, options: Mapping[str, Any]
) -> Op[RunResult]:
    from agents import Runner

    given_up: set[str] = set()
    following = input
    while True:
        step = following
        result = yield from call(
            lambda: Runner.run_sync(agent, step, **options), lambda: Runner.run(agent, step, **options)
        )
        if not result.interruptions:
            return result  # type: ignore[no-any-return]
        state = result.to_state()
        if not (yield from _decide(ops, state, choices, given_up)):
            return result  # type: ignore[no-any-return]
        following = state


def _decide(ops: Operations, state: RunState[Any], choices: Choices, given_up: set[str]) -> Op[int]:
    """Decides what can be decided; `given_up` names what was left alone before."""
    pending: list[tuple[str, ToolApprovalItem]] = []
    wanted = []
    for item in state.get_interruptions():
        name = item.call_id or f"{item.qualified_name} {item.arguments}"
        held = None
        if name not in given_up:
            held = approval(name, item.qualified_name or "a tool", item.arguments or "", _whose(item))
        if held is None:
            given_up.add(name)
        else:
            pending.append((name, item))
            wanted.append(held)
    outcomes = yield from consult(ops, PIECE, wanted, choices)
    decided = 0
    for (name, item), outcome in zip(pending, outcomes, strict=True):
        answer = approval_answer(outcome)
        if answer is None:
            given_up.add(name)
            continue
        decided += 1
        if answer.approved:
            state.approve(item)
        else:
            said = f" {answer.quoted}" if answer.quoted else ""
            state.reject(item, rejection_message=f"{answer.by.name} turned this tool call down.{said}")
    return decided


def _whose(item: ToolApprovalItem) -> str | None:
    name = getattr(item.agent, "name", None)
    return f"Agent: {visible(name)}" if isinstance(name, str) else None
