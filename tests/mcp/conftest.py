"""The real `chips serve` and `chips mcp`, and a person."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp.client.session
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, SUPPORTED_PROTOCOL_VERSIONS

LIMIT = 30.0
"""How long anything may take before a test gives up on it, in seconds."""

BINARY = Path(os.environ["CHIPS_BIN"])

SLICE = "2s"
BEAT = "1s"


def until(what: str, condition: Callable[[], Any]) -> Any:
    """Waits until the condition gives something that is true, and returns that."""
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def environment(**more: str) -> dict[str, str]:
    """This environment, without what would tell `chips` of another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHIPS_", "XDG_", "RUST_LOG"))}
    return {**kept, **more}


class Server:
    """A server with a person and a harness."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = environment(HOME=str(home), CHIPS_DATA=str(home / "data"))
        made = self.command("init", "--json")
        self.person: dict[str, str] = made["person"]
        self.harness: dict[str, str] = made["harness"]
        self.address = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None
        self.keys = itertools.count()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def command(self, *arguments: str) -> Any:
        done = subprocess.run([BINARY, *arguments], env=self.env, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout

    def start(self, slice: str = SLICE) -> None:
        """Starts it, on the port that it had before."""
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", self.address, "--mcp-slice", slice, "--mcp-beat", BEAT],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = ""
        while "listening on http://" not in line:
            line = self.process.stdout.readline()
            assert line, "it ended before it listened"
        self.address = line.split("listening on http://")[1].split()[0]

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(LIMIT)
            self.process = None

    def api(self, method: str, path: str, *, token: str | None = None, body: Any = None) -> Any:
        """A call of the API, as the person unless a token says otherwise."""
        headers = {"authorization": f"Bearer {token or self.person['token']}"}
        reply = httpx2.request(method, self.url + path, headers=headers, json=body, timeout=LIMIT)
        assert reply.is_success, reply.text
        return reply.json()

    def ask(self, ask_id: str) -> Any:
        return self.api("GET", f"/v1/asks/{ask_id}")

    def asks(self, state: str = "open") -> list[Any]:
        return self.api("GET", f"/v1/asks?state={state}&limit=200")["asks"]

    def one_open(self) -> Any:
        """The open ask, once there is one."""
        (ask,) = until("an open ask", self.asks)
        return ask

    def nobody_waits(self) -> bool:
        """Whether no request waits for an ask to close."""
        return "chips_waiters 0\n" in httpx2.get(f"{self.url}/metrics").text

    def run(self, ask: Any) -> Any:
        return self.api("GET", f"/v1/runs/{ask['ask']['run_id']}")

    def answer(self, ask: Any, *answers: Mapping[str, Any]) -> None:
        """Answers as the person does."""
        event = ask["ask"]
        self.api(
            "POST",
            "/v1/events",
            body={
                "v": 1,
                "type": "question.answered",
                "id": ask["ask_id"].replace("qst_", "evt_"),
                "workspace_id": event["workspace_id"],
                "actor": {"kind": "person", "id": self.person["id"]},
                "run_id": event["run_id"],
                "ask_id": ask["ask_id"],
                "idempotency_key": f"answer {next(self.keys)}",
                "answers": list(answers),
            },
        )

    def stdio(self, folder: Path | None = None, slice: str = SLICE, **more: str) -> StdioServerParameters:
        """How a client starts `chips mcp` in this folder."""
        env = {"CHIPS_URL": self.url, "CHIPS_TOKEN": self.harness["token"], "HOME": str(self.home), **more}
        return StdioServerParameters(
            command=str(BINARY),
            args=["mcp", "--slice", slice, "--beat", BEAT],
            env=environment(**env),
            cwd=folder or self.home,
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


REVISIONS = SUPPORTED_PROTOCOL_VERSIONS
LATEST = REVISIONS[-1]
LINKS = ("stdio", "http")


@asynccontextmanager
async def connected(
    server: Server,
    link: str,
    revision: str = LATEST,
    *,
    name: str = "tester",
    token: str | None = None,
    target: StdioServerParameters | None = None,
) -> AsyncIterator[Client]:
    """A client of the SDK, connected over this link and speaking this revision of the protocol."""
    legacy = revision in HANDSHAKE_PROTOCOL_VERSIONS
    offered = mcp.client.session.LATEST_HANDSHAKE_VERSION
    if legacy:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    headers = {"authorization": f"Bearer {token or server.harness['token']}"}
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=LIMIT) as http:
            way = (
                target or server.stdio()
                if link == "stdio"
                else streamable_http_client(f"{server.url}/mcp", http_client=http)
            )
            mode = "legacy" if legacy else revision
            async with Client(way, mode=mode, client_info=Implementation(name=name, version="1")) as client:
                assert client.session.protocol_version == revision
                yield client
    finally:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = offered


def told(result: Any) -> Any:
    """What a result says: the text, which is the same as the structured content where the revision has that."""
    (block,) = result.content
    said = json.loads(block.text)
    if result.structured_content is not None:
        assert result.structured_content == said
    return said


def questions(prompt: str = "Which bed first?", **more: Any) -> dict[str, Any]:
    question = {
        "prompt": prompt,
        "options": [
            {"label": "Herbs, north", "value": "herbs", "description": "Half done."},
            {"label": "Beans"},
        ],
        "allow_free_text": True,
        **more,
    }
    return {"questions": [question]}


class Process:
    """`chips mcp`, spoken to by hand."""

    def __init__(self, target: StdioServerParameters) -> None:
        self.process = subprocess.Popen(
            [target.command, *target.args],
            env=target.env,
            cwd=target.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._hear, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def _hear(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def message(self) -> Any:
        """The next message; every line of standard output is one."""
        line = self.lines.get(timeout=LIMIT)
        assert line, "it closed its output"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def reply(self, number: int) -> Any:
        while (message := self.message()).get("id") != number:
            pass
        return message

    def initialize(self, name: str = "by hand") -> Any:
        info = {"name": name, "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.send(id=0, method="initialize", params=params)
        reply = self.reply(0)
        self.send(method="notifications/initialized")
        return reply

    def call(self, number: int, tool: str, arguments: Any, **meta: Any) -> None:
        params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        self.send(id=number, method="tools/call", params=params)

    def close(self) -> int:
        """Closes its input and waits for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIMIT)
