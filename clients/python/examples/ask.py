"""Asks one question and goes on with what a person chose.

    CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… python ask.py
"""

import chips

with chips.Client() as people:
    outcome = people.ask_and_wait(
        chips.question(
            "Northwind can ship on the 19th or the 26th. Which should I confirm?",
            {"19": "19 September", "26": "26 September"},
            id="window",
            allow_free_text=True,
        ),
        title="Order 4711",
        labels=chips.here(),
    )
    match outcome:
        case chips.Answered() if outcome["window"].free_text:
            print(f"{outcome.by.name} wrote: {outcome['window'].free_text!r}")
        case chips.Answered():
            print(f"{outcome.by.name} chose {outcome['window'].value}")
        case _:
            print(f"nobody chose: {outcome}")
    people.acknowledge(outcome)
