"""`/mcp` of the server, as bytes."""

from __future__ import annotations

import json
import signal
from typing import Any

import httpx2
import pytest
from conftest import LIMIT, Server, connected, questions, told, until

BOTH = "application/json, text/event-stream"


def headers(server: Server, token: str | None = None, **more: str) -> dict[str, str]:
    token = token or server.harness["token"]
    return {"authorization": f"Bearer {token}", "accept": BOTH, **{name.replace("_", "-"): value for name, value in more.items()}}


def message(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}


def initialize(name: str = "by hand") -> dict[str, Any]:
    info = {"name": name, "version": "1"}
    return message("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)


def ask(number: int = 2) -> dict[str, Any]:
    return message("tools/call", number, name="ask_person", arguments=questions())


def post(server: Server, body: Any, sent: dict[str, str]) -> httpx2.Response:
    return httpx2.post(f"{server.url}/mcp", json=body, headers=sent, timeout=LIMIT)


def session(server: Server, token: str | None = None) -> str:
    reply = post(server, initialize(), headers(server, token))
    assert reply.status_code == 200, reply.text
    return reply.headers["mcp-session-id"]


def problem(reply: httpx2.Response, status: int, code: str) -> None:
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json"), reply.text
    assert reply.json()["code"] == code


def test_only_a_harness_is_let_in(server: Server) -> None:
    nobody = {name: value for name, value in headers(server).items() if name != "authorization"}
    for sent in (nobody, headers(server, "chips_hk_wrong")):
        reply = post(server, initialize(), sent)
        problem(reply, 401, "unauthenticated")
        assert reply.headers["www-authenticate"] == "Bearer"
    problem(post(server, initialize(), headers(server, server.person["token"])), 403, "wrong_sender")


def test_a_page_of_another_site_and_another_name_are_refused(server: Server) -> None:
    problem(post(server, initialize(), headers(server, origin="https://evil.example")), 403, "wrong_sender")
    problem(post(server, initialize(), headers(server, host="evil.example")), 421, "misdirected")
    assert post(server, initialize(), headers(server, origin=server.url)).status_code == 200


def test_bodies_are_held_to_what_they_must_be(server: Server) -> None:
    def send(content: bytes, **more: str) -> httpx2.Response:
        sent = headers(server, content_type="application/json") | more
        return httpx2.post(f"{server.url}/mcp", content=content, headers=sent, timeout=LIMIT)

    problem(send(b"{"), 400, "malformed_json")
    problem(send(b'{"id":1,"id":2}'), 400, "duplicate_key")
    problem(send(b"[]"), 400, "malformed_json")
    problem(send(b" " * 300_000), 413, "too_large")
    problem(send(b"{}", **{"content-type": "text/plain"}), 415, "unsupported_media_type")


def test_a_session_belongs_to_the_token_that_opened_it_until_it_is_ended(server: Server) -> None:
    mine = session(server)
    listing = message("tools/list", 3)
    assert post(server, listing, headers(server, mcp_session_id=mine)).status_code == 200
    other = server.command("harness", "add", "other", "--json")["token"]
    for sent in (headers(server, other, mcp_session_id=mine), headers(server, mcp_session_id=mine[:-1])):
        problem(post(server, listing, sent), 404, "not_found")
    server.stop()
    server.start()
    assert post(server, listing, headers(server, mcp_session_id=mine)).status_code == 200, "it outlives a restart"
    end = httpx2.delete(f"{server.url}/mcp", headers=headers(server, mcp_session_id=mine))
    assert end.status_code == 204
    problem(post(server, listing, headers(server, mcp_session_id=mine)), 404, "not_found")
    problem(httpx2.delete(f"{server.url}/mcp", headers=headers(server)), 400, "bad_query")
    reply = httpx2.get(f"{server.url}/mcp", headers=headers(server))
    problem(reply, 405, "method_not_allowed")
    assert set(reply.headers["allow"].replace(" ", "").split(",")) == {"POST", "DELETE"}


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_a_wait_is_a_stream_whose_first_byte_comes_before_any_answer(server: Server, revision: str) -> None:
    body = ask()
    if revision == "2025-06-18":
        sent = headers(server, mcp_session_id=session(server), mcp_protocol_version=revision)
    else:
        sent = headers(server, mcp_protocol_version=revision, mcp_method="tools/call", mcp_name="ask_person")
        body["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    with httpx2.stream("POST", f"{server.url}/mcp", json=body, headers=sent, timeout=LIMIT) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["x-accel-buffering"] == "no"
        chunks = reply.iter_bytes()
        assert next(chunks).startswith(b":"), "a comment, before there is anything to say"
        assert server.one_open()["state"] == "open"
        rest = b"".join(chunks).decode()
    (line,) = [line for line in rest.splitlines() if line.startswith("data: {")]
    said = json.loads(json.loads(line.removeprefix("data: "))["result"]["content"][0]["text"])
    assert said["status"] == "pending"


def test_a_call_that_is_cancelled_ends_its_stream_and_leaves_the_question_open(server: Server) -> None:
    sent = headers(server, mcp_session_id=session(server), mcp_protocol_version="2025-06-18")
    with httpx2.stream("POST", f"{server.url}/mcp", json=ask(7), headers=sent, timeout=LIMIT) as reply:
        chunks = reply.iter_bytes()
        next(chunks)
        server.one_open()
        cancelled = post(server, message("notifications/cancelled", None, requestId=7), sent)
        assert cancelled.status_code == 202
        assert not any(b"data: {" in chunk for chunk in chunks), "it is not answered"
    found = server.one_open()
    server.answer(found, {"question_id": "q1", "values": ["herbs"]})
    again = post(server, ask(8), sent).json()
    assert json.loads(again["result"]["content"][0]["text"])["status"] == "answered"


def test_the_end_of_the_server_ends_its_streams_with_what_is_known(server: Server) -> None:
    server.stop()
    server.start("1h")
    sent = headers(server, mcp_session_id=session(server), mcp_protocol_version="2025-06-18")
    with httpx2.stream("POST", f"{server.url}/mcp", json=ask(), headers=sent, timeout=LIMIT) as reply:
        chunks = reply.iter_bytes()
        next(chunks)
        server.one_open()
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        rest = b"".join(chunks).decode()
    assert '\\"status\\":\\"pending\\"' in rest
    server.process.wait(LIMIT)


def test_a_disabled_harness_waits_no_longer(server: Server) -> None:
    server.stop()
    server.start("1h")
    other = server.command("harness", "add", "other", "--json")
    sent = headers(server, other["token"], mcp_session_id=session(server, other["token"]))
    with httpx2.stream("POST", f"{server.url}/mcp", json=ask(), headers=sent, timeout=LIMIT) as reply:
        chunks = reply.iter_bytes()
        next(chunks)
        server.one_open()
        server.command("harness", "disable", other["id"])
        assert "unauthenticated" in b"".join(chunks).decode()
    problem(post(server, ask(), sent), 401, "unauthenticated")


@pytest.mark.anyio
async def test_two_sessions_of_a_harness_are_two_conversations(server: Server) -> None:
    async with connected(server, "http", "2025-06-18") as one, connected(server, "http", "2025-06-18") as other:
        first = told(await one.call_tool("ask_person", questions()))
        second = told(await other.call_tool("ask_person", questions()))
        assert first["ask_id"] != second["ask_id"]


@pytest.mark.anyio
async def test_a_client_without_sessions_leaves_no_run_behind(server: Server) -> None:
    async with connected(server, "http", name="night shift") as client:
        pending = told(await client.call_tool("ask_person", questions()))
        found = server.ask(pending["ask_id"])
        assert server.run(found)["labels"]["client"] == "night shift"
        server.answer(found, {"question_id": "q1", "values": ["herbs"]})
        await client.call_tool("wait_for_answer", {"ask_id": pending["ask_id"]})
        until("the run to end", lambda: server.run(found)["state"] == "ended")
