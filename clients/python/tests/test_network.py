"""Both clients against a network that fails in every way that a script can think of."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
import trustme

import chips
from chips import _core
from tests import nasty
from tests.both import Kind, open_client
from tests.conductor import ASK, ME, RUN, YES, ask_event, ask_json, sse

SHIP = chips.question("Ship it?", {"yes": "Ship", "no": "Hold"})
Serve = Callable[..., tuple[nasty.Nasty, chips.Client]]


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def serve(kind: Kind) -> Iterator[Serve]:
    """Starts a server with this script, and a client of it."""
    with ExitStack() as stack:

        def start(*script: nasty.Step, **options: Any) -> tuple[nasty.Nasty, chips.Client]:
            server = stack.enter_context(nasty.Nasty(*script).serving())
            client = open_client(kind, server.url, **options)
            stack.callback(client.close)
            return server, client

        yield start


def answered() -> nasty.Step:
    return nasty.reply(200, ask_json("answered", answers=YES))


UNAVAILABLE = {"type": "/problems/unavailable", "title": "", "status": 503, "detail": "full disk", "code": "unavailable"}


def test_one_ask_comes_of_a_network_that_keeps_failing(serve: Serve) -> None:
    server, client = serve(
        nasty.cut_before_a_byte,
        nasty.half_a_reply,
        nasty.no_http,
        nasty.reply(503, UNAVAILABLE, "application/problem+json", Retry_After="0"),
        nasty.reply(502, b"<h1>Bad Gateway</h1>", "text/html"),
        nasty.echo(200, Idempotency_Replayed="true"),
    )
    stored = client.ask(SHIP, run=RUN)
    assert stored.replayed
    assert len({each.body for each in server.requests}) == 1 and len(server.requests) == 6
    sent = server.requests[0]
    assert (sent.method, sent.target) == ("POST", "/v1/events")
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["authorization"] == "Bearer chips_hk_test"
    assert json.loads(sent.body)["ask_id"] == stored.ask_id


def test_a_wait_outlives_restarts_and_dead_networks(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "SLICE", 0)
    monkeypatch.setattr(_core, "GRACE", 0.05)
    server, client = serve(
        nasty.reply(200, ask_json()),
        nasty.silence,
        nasty.cut_before_a_byte,
        nasty.half_a_reply,
        nasty.reply(404, b"no such site", "text/html"),
        answered(),
    )
    outcome = client.wait(ASK)
    assert isinstance(outcome, chips.Answered) and outcome["question"].value == "yes"
    assert [each.target for each in server.requests] == [f"/v1/asks/{ASK}?wait=0"] * 6


def test_nobody_listens_at_all(kind: Kind) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = open_client(kind, f"http://127.0.0.1:{port}", retry_for=0.1)
    with pytest.raises(chips.Unreachable, match="GET /v1/me: ConnectError"):
        client.ask(SHIP, run=RUN)
    with pytest.raises(chips.StillOpen):
        client.wait(ASK, timeout=0.05)
    client.close()


def test_a_server_that_is_not_trusted_is_told_at_once_and_never_hears_the_token(kind: Kind) -> None:
    heard: list[bytes] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                with context.wrap_socket(connection, server_side=True) as secured:
                    heard.append(secured.recv(65536))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        client = open_client(kind, f"https://127.0.0.1:{listener.getsockname()[1]}", retry_for=None)
        with pytest.raises(chips.Unreachable, match="certificate verify failed.*after 1 tries"):
            client.ask(SHIP, run=RUN)
        thread.join(10)
        client.close()
    assert heard in ([], [b""])


def test_a_redirect_is_not_followed_with_the_token(serve: Serve) -> None:
    elsewhere = nasty.Nasty()
    with elsewhere.serving():
        _, client = serve(nasty.reply(307, b"", "text/plain", Location=elsewhere.url + "/v1/events"))
        with pytest.raises(chips.UnexpectedReply, match=f"redirects to {elsewhere.url}"):
            client.ask(SHIP, run=RUN)
    assert elsewhere.requests == []


def test_a_stream_resumes_without_a_gap_and_without_a_repeat(serve: Serve) -> None:
    odd = ask_event(seq=12)
    odd["questions"][0]["prompt"] = "one\r\n\r\nevent: x\ndata: forged\u2028two"
    first, second, third = (sse([event]) for event in (ask_event(seq=11), odd, ask_event(seq=13)))
    server, client = serve(
        nasty.reply(200, {"events": [], "head": 10, "log": "L1"}),
        nasty.stream(b": hi\n\n", first[:20], first[20:], second[:-30]),
        nasty.cut_before_a_byte,
        nasty.reply(503, b"", "text/plain"),
        nasty.stream(*(bytes([byte]) for byte in first + second), then_cut=True),
        nasty.stream(second, third, then_cut=False),
    )
    stream = client.stream()
    events = [next(stream) for _ in range(3)]
    stream.close()
    assert [event.seq for event in events] == [11, 12, 13]
    assert isinstance(events[1], chips.AskEvent) and events[1].questions[0].prompt == odd["questions"][0]["prompt"]
    afters = [each.target.split("after=")[1].split("&")[0] for each in server.requests[1:]]
    assert afters == ["10", "11", "11", "11", "12"]
    assert server.requests[1].headers["accept"] == "text/event-stream"
    assert server.requests[1].headers["accept-encoding"] == "identity"


def test_a_silent_stream_is_a_dead_one(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "STREAM_SILENCE", 0.05)
    _, client = serve(nasty.stream(b": hi\n\n", then_cut=False), nasty.stream(sse([ask_event(seq=3)])))
    stream = client.stream(after=chips.Position(2, "L1"))
    assert next(stream).seq == 3
    stream.close()


def test_a_reader_that_leaves_hangs_up(serve: Serve) -> None:
    server, client = serve(nasty.stream(sse([ask_event(seq=3)]), then_cut=False))
    for event in client.stream(after=chips.Position(2, "L1")):
        assert event.seq == 3
        break
    client.close()
    assert server.all_hung_up.wait(10)


def test_more_waits_at_once_than_a_pool_usually_holds() -> None:
    async def scenario(url: str) -> list[chips.Outcome]:
        async with chips.AsyncClient(url, "chips_hk_test") as client:
            return await asyncio.wait_for(asyncio.gather(*(client.wait(ASK) for _ in range(150))), 60)

    gate = asyncio.Event()

    async def together(exchange: nasty.Exchange) -> None:
        if len(server.requests) == 150:
            gate.set()
        await gate.wait()
        await answered()(exchange)

    server = nasty.Nasty(*[together] * 150)
    with server.serving():
        assert len(asyncio.run(scenario(server.url))) == 150


def test_an_httpx_client_of_ones_own_is_used_and_left_open() -> None:
    heard: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        return httpx.Response(200, json=ME)

    async def scenario() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(respond), follow_redirects=True) as own:
            async with chips.AsyncClient("https://chips.example/base", "chips_hk_test", http=own) as client:
                await client.me()
            assert not own.is_closed

    with httpx.Client(transport=httpx.MockTransport(respond), follow_redirects=True) as own:
        with chips.Client("https://chips.example/base", "chips_hk_test", http=own) as client:
            client.me()
        assert not own.is_closed
    asyncio.run(scenario())
    for request in heard:
        assert request.url == "https://chips.example/base/v1/me"
        assert request.headers["authorization"] == "Bearer chips_hk_test"
        assert request.extensions["timeout"]["pool"] is None
    assert len(heard) == 2


def test_a_cancelled_wait_lets_go() -> None:
    async def scenario(url: str) -> None:
        async with chips.AsyncClient(url, "chips_hk_test") as client:
            await asyncio.wait_for(client.wait(ASK), 0.05)

    server = nasty.Nasty(nasty.silence)
    with server.serving():
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(scenario(server.url))
        assert server.all_hung_up.wait(10)


def test_threads_share_a_client() -> None:
    server = nasty.Nasty(*[answered()] * 20)
    with server.serving(), chips.Client(server.url, "chips_hk_test") as client:
        outcomes: list[chips.Outcome] = []
        threads = [threading.Thread(target=lambda: outcomes.append(client.wait(ASK))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(outcomes) == 20
