"""A graph that asks people in the middle of its work, and goes on with what they chose.

    CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… python langgraph_order.py
"""

from dataclasses import dataclass

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

import chips
import chips.langgraph


@dataclass
class Order:
    number: int
    window: str = "not decided"


def confirm(state: Order) -> dict[str, str]:
    answer = chips.langgraph.ask_people(
        chips.question(f"When should order {state.number} ship?", {"19": "19 September", "26": "26 September"})
    )
    if answer["status"] != "answered":
        return {}
    return {"window": answer["answers"][0]["labels"][0]}


builder = StateGraph(Order)
builder.add_node("confirm", confirm)
builder.add_edge(START, "confirm")
builder.add_edge("confirm", END)
# With a checkpointer that outlives the process, a restarted program takes up the same ask.
graph = builder.compile(checkpointer=InMemorySaver())

with chips.Client() as people:
    result = chips.langgraph.drive(people, graph, Order(4711), {"configurable": {"thread_id": "order-4711"}})
print("ships on:", result["window"])
