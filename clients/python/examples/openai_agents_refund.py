"""An agent whose refunds a person has to approve, and that can ask people questions.

    CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… OPENAI_API_KEY=… python openai_agents_refund.py
"""

import asyncio

from agents import Agent, Model, function_tool

import chips
import chips.openai_agents


@function_tool(needs_approval=True)
def refund(order: int) -> str:
    """Pays an order back."""
    return f"order {order} is refunded"


async def main(model: str | Model = "gpt-5") -> None:
    async with chips.AsyncClient() as people:
        agent = Agent("Refunder", tools=[refund, chips.openai_agents.ask_person(people)], model=model)
        result = await chips.openai_agents.run(people, agent, "Refund order 4711", title="Refund of order 4711")
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
