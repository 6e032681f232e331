"""An agent whose refunds a person has to approve, and that can ask people questions.

    CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… MODEL=openai:gpt-5 python pydantic_ai_refund.py

Without MODEL it runs with Pydantic AI's own test model, which calls every tool once.
"""

import os

from pydantic_ai import Agent, DeferredToolRequests

import chips
import chips.pydantic_ai

agent = Agent(os.environ.get("MODEL", "test"), output_type=[str, DeferredToolRequests])


@agent.tool_plain(requires_approval=True)
def refund(order: int) -> str:
    return f"order {order} is refunded"


with chips.Client() as people:
    result = chips.pydantic_ai.run_sync(people, agent, "Refund order 4711", title="Refund of order 4711")
print(result.output)
