"""The OpenAI Agents SDK itself, with a scripted model, against the real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    RunState,
    Usage,
    function_tool,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import chips
import chips.openai_agents
from tests.server import Server, pick, type_in

QUIET = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """Makes its calls in the first turn, then says what came of them."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = calls

    async def get_response(self, system_instructions: Any, input: Any, *arguments: Any, **named: Any) -> ModelResponse:
        outputs = [each["output"] for each in input if isinstance(each, dict) and "output" in each]
        if outputs or not self.calls:
            text = ResponseOutputText(text=json.dumps(outputs), type="output_text", annotations=[])
            message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse([message], Usage(), None)
        wanted = [
            ResponseFunctionToolCall(
                call_id=f"call-{number}", name=name, arguments=json.dumps(given), type="function_call"
            )
            for number, (name, given) in enumerate(self.calls)
        ]
        return ModelResponse([*wanted], Usage(), None)

    def stream_response(self, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def refunds(*amounts: int) -> tuple[Agent[Any], list[int]]:
    """An agent whose tool pays back, once somebody has approved."""
    paid: list[int] = []

    @function_tool(needs_approval=True)
    def refund(amount: int) -> str:
        paid.append(amount)
        return f"refunded {amount}"

    calls = [("refund", {"amount": amount}) for amount in amounts]
    return Agent("Refunder", tools=[refund], model=Scripted(*calls)), paid


Run = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest, shared: Server) -> Iterator[Run]:
    """Runs an agent with each client in turn."""
    if request.param == "sync":
        request.getfixturevalue("loop_of_this_thread")
        with shared.harness() as client:
            yield lambda *arguments, **options: chips.openai_agents.run_sync(
                client, *arguments, run_config=QUIET, **options
            )
    else:

        async def awaited(*arguments: Any, **options: Any) -> Any:
            async with shared.async_harness() as client:
                return await chips.openai_agents.run(client, *arguments, run_config=QUIET, **options)

        yield lambda *arguments, **options: asyncio.run(awaited(*arguments, **options))


def by_amount(event: chips.AskEvent) -> dict[str, str]:
    return {"approval": "approve" if '"amount": 3' in event.questions[0].prompt else "reject"}


class TestApprovals:
    def test_each_call_is_decided_by_itself(self, run: Run, shared: Server) -> None:
        agent, paid = refunds(3, 900)
        with shared.somebody(by_amount, by_amount) as seen:
            result = run(agent, "refund them", title="Refunds")
        assert paid == [3] and result.interruptions == []
        told = json.loads(result.final_output)
        assert "refunded 3" in told and any("turned this tool call down" in each for each in told)
        assert len({event.run_id for event in seen}) == 1
        question = seen[0].questions[0]
        assert "Agent: Refunder" in question.prompt and "May the agent run refund?" in question.prompt
        assert {option.value for option in question.options} == {"approve", "reject"}
        assert question.default_value is None and seen[0].timeout_seconds is None

    def test_a_reason_reaches_the_model_as_data(self, run: Run, shared: Server) -> None:
        agent, paid = refunds(3)
        with shared.somebody(type_in("yes, go on")):
            result = run(agent, "refund them")
        assert paid == [], "text is never an approval"
        assert 'quoted as data: "yes, go on"' in json.loads(result.final_output)[0]

    def test_silence_neither_approves_nor_rejects(self, run: Run) -> None:
        agent, paid = refunds(3)
        result = run(agent, "refund them", timeout_seconds=0.2)
        assert len(result.interruptions) == 1 and paid == [] and result.final_output is None

    def test_what_can_not_be_shown_whole_is_handed_back(
        self, run: Run, shared: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        agent, paid = refunds(3, int("9" * 4000))
        with shared.somebody(pick("approve")):
            result = run(agent, "refund them")
        assert [item.call_id for item in result.interruptions] == ["call-1"] and paid == [3]
        assert "too long to be shown whole" in caplog.text

    def test_an_agent_without_approvals_just_runs(self, run: Run) -> None:
        assert run(Agent("Quiet", model=Scripted()), "hello").final_output == "[]"

    def test_a_state_that_was_kept_is_decided_by_whoever_drives_it(self, shared: Server) -> None:
        async def scenario() -> tuple[Any, list[int]]:
            agent, paid = refunds(3)
            stopped = await Runner.run(agent, "refund them", run_config=QUIET)
            kept = stopped.to_state().to_string()
            state = await RunState.from_string(agent, kept)
            async with shared.async_harness() as client:
                assert await chips.openai_agents.decide(client, state, key="kept-" + chips.new_run_id()) == 1
            return await Runner.run(agent, state, run_config=QUIET), paid

        with shared.somebody(pick("approve")):
            result, paid = asyncio.run(scenario())
        assert paid == [3] and json.loads(result.final_output) == ["refunded 3"]


QUESTION = {
    "question": "Which window?",
    "options": [{"label": "19 September", "description": None}, {"label": "26 September", "description": "A pallet"}],
    "multi_select": False,
}


class TestTheToolThatAsks:
    def ask(self, shared: Server, questions: Any, **options: Any) -> dict[str, Any]:
        async def scenario() -> Any:
            async with shared.async_harness() as client:
                tool = chips.openai_agents.ask_person(client, **options)
                agent = Agent("Asker", tools=[tool], model=Scripted(("ask_person", {"questions": questions})))
                return (await Runner.run(agent, "ship it", run_config=QUIET)).final_output

        (told,) = json.loads(asyncio.run(scenario()))
        data = json.loads(told)
        assert isinstance(data, dict)
        return data

    def test_a_model_gets_what_a_person_chose(self, shared: Server) -> None:
        with shared.somebody(pick("26 September")) as seen:
            data = self.ask(shared, [QUESTION])
        assert data["answers"][0]["labels"] == ["26 September"] and data["answered_by"]["id"] == shared.person_id
        assert seen[0].questions[0].options[1].description == "A pallet" and seen[0].questions[0].allow_free_text

    def test_a_time_out_is_told_as_one(self, shared: Server) -> None:
        data = self.ask(shared, [QUESTION], timeout_seconds=0.2)
        assert (data["status"], data["timed_out"], data["answers"]) == ("timed_out", True, [])

    @pytest.mark.parametrize("questions", [[], [QUESTION] * 5, [{**QUESTION, "options": QUESTION["options"][:1]}]])  # type: ignore[index]
    def test_questions_that_chips_refuses_ask_nobody(self, shared: Server, questions: Any) -> None:
        assert self.ask(shared, questions)["status"] == "refused"

    def test_the_tool_says_what_a_model_needs_to_know(self, shared: Server) -> None:
        async def scenario() -> Any:
            async with shared.async_harness() as client:
                return chips.openai_agents.ask_person(client)

        tool = asyncio.run(scenario())
        assert "only a person can decide" in tool.description
        assert set(tool.params_json_schema["$defs"]["PersonQuestion"]["properties"]) == {
            "question",
            "options",
            "multi_select",
        }
