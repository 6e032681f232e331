"""Asks two things at once, each with a default for the case that nobody answers in time.

    CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… python ask_async.py
"""

import asyncio

import chips

TARGETS = {"eu": "Deploy to Europe?", "us": "Deploy to the United States?"}


async def decide(people: chips.AsyncClient, run: chips.Run, target: str, prompt: str) -> bool:
    stored = await people.ask(
        chips.question(prompt, {"yes": "Deploy", "no": "Leave it"}, default_value="no"),
        run=run,
        timeout_seconds=3600,
        on_no_answer="use_default",
    )
    match await people.wait(stored):
        case chips.Answered() as answered:
            print(f"{target}: {answered.by.name} said {answered['question'].value}")
            return answered["question"].value == "yes"
        case chips.TimedOut(defaults=taken):
            print(f"{target}: nobody answered, so it is {taken['question'].value}")
            return taken["question"].value == "yes"
        case _:
            return False


async def main() -> None:
    async with chips.AsyncClient() as people:
        run = await people.open_run("Release 1.4", labels=chips.here(), lease_seconds=600)
        try:
            decided = await asyncio.gather(*(decide(people, run, *each) for each in TARGETS.items()))
        finally:
            await people.end_run(run)
    print("deploying to", [target for target, yes in zip(TARGETS, decided, strict=True) if yes])


asyncio.run(main())
