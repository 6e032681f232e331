"""A server that misbehaves on cue, on a real socket: each request is met by the next step of a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.conductor import ME

Step = Callable[["Exchange"], Awaitable[None]]


@dataclass
class Exchange:
    """One request, as it came, and the way back."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    hung_up: asyncio.Event

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def cut(self) -> None:
        """Ends the connection without a word."""
        self.writer.transport.abort()


def reply(status: int, body: object = None, kind: str = "application/json", **headers: str) -> Step:
    """A whole reply."""

    async def step(exchange: Exchange) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await exchange.send("\r\n".join([*lines, "", ""]).encode() + data)

    return step


async def cut_before_a_byte(exchange: Exchange) -> None:
    exchange.cut()


async def half_a_reply(exchange: Exchange) -> None:
    await exchange.send(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"ask_id"')
    exchange.cut()


async def no_http(exchange: Exchange) -> None:
    await exchange.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    exchange.cut()


async def silence(exchange: Exchange) -> None:
    """Takes the request and never says anything, as a dead network does."""
    await exchange.hung_up.wait()


def echo(status: int = 201, **headers: str) -> Step:
    """Takes a write as Chips would."""

    async def step(exchange: Exchange) -> None:
        event = json.loads(exchange.body)
        await reply(status, {**event, "ts": "2026-09-02T14:22:05.004Z", "seq": 7}, **headers)(exchange)

    return step


def stream(*pieces: bytes, then_cut: bool = True) -> Step:
    """An event stream in these pieces, each a chunk of its own."""

    async def step(exchange: Exchange) -> None:
        await exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            await exchange.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if then_cut:
            exchange.cut()
        else:
            await exchange.hung_up.wait()

    return step


class Nasty:
    """The server. `/v1/me` is answered as it should be; everything else by the script."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.requests: list[Exchange] = []
        self.faults: list[str] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.all_hung_up = threading.Event()

    @contextmanager
    def serving(self) -> Iterator[Nasty]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()
        assert not self.faults, self.faults
        assert not self.script, f"{len(self.script)} steps were never reached"

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.all_hung_up.clear()
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self.all_hung_up.set()
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        exchange = Exchange(method, target, headers, body, writer, asyncio.Event())
        if target == "/v1/me":
            await reply(200, ME)(exchange)
            return True
        self.requests.append(exchange)
        if not self.script:
            self.faults.append(f"one request too many: {method} {target}")
            return False
        step = self.script.pop(0)
        gone = asyncio.ensure_future(reader.read(1))
        gone.add_done_callback(lambda _: exchange.hung_up.set())
        try:
            await step(exchange)
        finally:
            if not gone.done():
                gone.cancel()
                await asyncio.gather(gone, return_exceptions=True)
        return not writer.transport.is_closing() and not exchange.hung_up.is_set()
