"""The real `chips serve`, in a folder of its own."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import chips

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 30.0
"""How long anything may take before a test gives up on it, in seconds."""


def binary() -> Path:
    """The server to test against: `CHIPS_BIN`, else the repository's own debug build."""
    path = Path(os.environ.get("CHIPS_BIN") or ROOT / "target" / "debug" / "chips")
    assert path.is_file(), f"there is no {path}: run `cargo build`, or name a binary with CHIPS_BIN"
    return path


class Server:
    """A server with one person and one harness. It can be stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        made = json.loads(self.command("init", "--data", str(folder), "--json"))
        self.harness_id: str = made["harness"]["id"]
        self.harness_token: str = made["harness"]["token"]
        self.person_id: str = made["person"]["id"]
        self.person_token: str = made["person"]["token"]
        self.space_id: str = made["space_id"]
        self.address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def command(self, *arguments: str) -> str:
        """Runs the command `chips`, and returns what it prints."""
        done = subprocess.run([binary(), *arguments], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Starts it, on the port that it had before."""
        self._process = subprocess.Popen(
            [binary(), "serve", "--data", str(self.folder), "--listen", self.address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_pump, args=(self._process.stdout, lines), daemon=True).start()
        heard: list[str] = []
        while not (heard and "listening on http://" in heard[-1]):
            line = lines.get(timeout=LIMIT)
            assert line, "it ended before it listened:\n" + "".join(heard)
            heard.append(line)
        self.address = heard[-1].split("listening on http://")[1].split()[0].rstrip('",}/')

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Ends it and waits until it is gone."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(LIMIT)
            self._process = None

    def harness(self, **options: Any) -> chips.Client:
        """A client that speaks for the harness."""
        return chips.Client(self.url, self.harness_token, **options)

    def async_harness(self, **options: Any) -> chips.AsyncClient:
        """The same, awaited."""
        return chips.AsyncClient(self.url, self.harness_token, **options)

    def person(self) -> chips.Client:
        """A client that speaks for the person."""
        return chips.Client(self.url, self.person_token)

    def asks(self) -> list[chips.Ask]:
        """Every ask that there is, oldest first."""
        with self.person() as person:
            page = person.asks(state="closed", limit=200)
            asks = [*page.asks, *person.asks(state="open", limit=200).asks]
        return sorted(asks, key=lambda ask: ask.ask.seq or 0)

    @contextmanager
    def somebody(self, *replies: Reply) -> Iterator[list[chips.AskEvent]]:
        """A person who gives these answers to the next asks, in the order in which they come."""
        seen: list[chips.AskEvent] = []
        failed: list[BaseException] = []
        with self.person() as person:
            stream = person.stream(after=person.head(), type="question.ask")

            def answer() -> None:
                try:
                    for reply, event in zip(replies, stream, strict=False):
                        assert isinstance(event, chips.AskEvent)
                        seen.append(event)
                        person.answer(event, reply(event) if callable(reply) else reply)
                except BaseException as error:
                    failed.append(error)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            yield seen
            thread.join(LIMIT)
            assert not thread.is_alive(), f"only {len(seen)} of {len(replies)} asks came"
            if failed:
                raise failed[0]


Reply = Any  # answers, or a function from the ask's event to answers


def _pump(stream: IO[str], lines: queue.Queue[str]) -> None:
    """Keeps reading, so that the server never waits for its reader; an empty line says that it ended."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put("")


def pick(value: str) -> Callable[[chips.AskEvent], Mapping[str, str]]:
    """A person who chooses this value on every question."""
    return lambda event: {question.question_id: value for question in event.questions}


def type_in(text: str) -> Callable[[chips.AskEvent], Sequence[chips.Answer]]:
    """A person who types this on every question."""
    return lambda event: [chips.Answer(question.question_id, (), text) for question in event.questions]
