"""`chips mcp`: a process that an MCP client starts."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from conftest import LIMIT, Process, Server, connected, questions, told, until


def outcome(reply: object) -> dict[str, object]:
    assert isinstance(reply, dict) and "result" in reply, reply
    return json.loads(reply["result"]["content"][0]["text"])


def waiting(server: Server, **more: str) -> Process:
    """A process that waits for an answer."""
    process = Process(server.stdio(slice="1h", **more))
    process.initialize()
    process.call(1, "ask_person", questions())
    server.one_open()
    return process


def test_the_inbox_says_where_the_question_comes_from(server: Server) -> None:
    process = waiting(server)
    run = server.run(server.one_open())
    assert run["title"] == server.home.name
    assert run["labels"]["folder"] == str(server.home) and run["labels"]["host"]
    assert run["lease_seconds"] == 120
    process.close()


@pytest.mark.anyio
async def test_a_start_in_the_same_folder_takes_up_what_is_open(server: Server, tmp_path: Path) -> None:
    waiting(server).process.kill()
    ask = server.one_open()
    async with connected(server, "stdio") as client:
        assert told(await client.call_tool("ask_person", questions()))["ask_id"] == ask["ask_id"]
        server.answer(ask, {"question_id": "q1", "values": ["herbs"]})
        answered = told(await client.call_tool("ask_person", questions()))
        assert (answered["status"], answered["ask_id"]) == ("answered", ask["ask_id"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    waiting(server).process.kill()
    async with connected(server, "stdio", target=server.stdio(elsewhere)) as client:
        other = told(await client.call_tool("ask_person", questions()))
        assert other["ask_id"] != server.asks()[0]["ask_id"] and len(server.asks()) == 2


def test_what_was_answered_while_no_process_was_there_is_told_by_the_next_one(server: Server) -> None:
    waiting(server).process.kill()
    ask = server.one_open()
    server.answer(ask, {"question_id": "q1", "values": ["herbs"]})
    process = Process(server.stdio())
    process.initialize()
    process.call(1, "ask_person", questions())
    said = outcome(process.reply(1))
    assert (said["status"], said["ask_id"]) == ("answered", ask["ask_id"])
    until("the outcome to be noted as told", lambda: server.ask(ask["ask_id"])["acknowledged_at"])
    process.close()
    process = Process(server.stdio())
    process.initialize()
    process.call(1, "ask_person", questions())
    assert outcome(process.reply(1))["status"] == "pending", "what was told is asked anew"
    process.close()


def test_a_server_that_hangs_does_not_make_a_call_outlast_its_slice(server: Server) -> None:
    process = Process(server.stdio(slice="3s"))
    process.initialize()
    process.call(1, "ask_person", questions())
    ask = server.one_open()
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        # The reply of a plain call would be waited for for as long as this test waits for anything.
        said = outcome(process.reply(1))
        assert (said["status"], said["ask_id"]) == ("pending", ask["ask_id"])
        process.call(2, "wait_for_answer", {"ask_id": ask["ask_id"]})
        reply = process.reply(2)
        assert reply["result"]["isError"] and "stays open" in str(outcome(reply)["message"])
        process.call(3, "ask_person", questions("Another?"))
        assert "very same arguments" in str(outcome(process.reply(3))["message"])
    finally:
        server.process.send_signal(signal.SIGCONT)
    process.close()


def test_a_client_that_goes_away_leaves_the_question_open(server: Server) -> None:
    process = waiting(server)
    assert process.close() == 0
    ask = server.one_open()
    assert server.run(ask)["state"] == "live"
    assert outcome(process.reply(1))["status"] == "pending", "the call is answered with what is known"


def test_a_signal_ends_it_and_leaves_the_question_open(server: Server) -> None:
    process = waiting(server)
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(LIMIT) == 0
    assert server.one_open()["state"] == "open"


def test_a_run_in_which_nothing_is_open_ends_with_the_process(server: Server) -> None:
    process = waiting(server)
    ask = server.one_open()
    server.answer(ask, {"question_id": "q1", "values": ["Beans"]})
    assert outcome(process.reply(1))["status"] == "answered"
    assert process.close() == 0
    assert server.run(ask)["state"] == "ended"


def test_a_cancelled_call_leaves_the_question_open_and_is_not_answered(server: Server) -> None:
    process = waiting(server)
    process.send(method="notifications/cancelled", params={"requestId": 1, "reason": "the client's time is up"})
    process.send(id=2, method="ping")
    assert process.message()["id"] == 2
    server.answer(server.one_open(), {"question_id": "q1", "values": ["Beans"]})
    process.call(3, "ask_person", questions())
    assert outcome(process.reply(3))["status"] == "answered", "the answer was never told"
    process.call(4, "ask_person", questions())
    server.one_open()
    process.close()


def test_it_waits_over_a_restart_of_the_server(server: Server) -> None:
    process = waiting(server)
    ask = server.one_open()
    server.stop()
    server.start()
    server.answer(ask, {"question_id": "q1", "values": ["Beans"]})
    assert outcome(process.reply(1))["status"] == "answered"
    process.close()


@pytest.mark.parametrize("trouble", ["none", "no server", "another token", "odd input"])
def test_nothing_but_the_protocol_goes_to_standard_output(server: Server, trouble: str) -> None:
    more = {"RUST_LOG": "trace", "CHIPS_LOG": "trace"}
    if trouble == "another token":
        other = server.command("harness", "add", "other", "--json")
        server.command("harness", "disable", other["id"])
        more["CHIPS_TOKEN"] = other["token"]
    process = Process(server.stdio(slice="1s", **more))
    if trouble == "no server":
        server.stop()
    assert process.initialize()["result"]["serverInfo"]["name"] == "chips"
    if trouble == "odd input":
        assert process.process.stdin is not None
        process.process.stdin.write("not JSON\n[]\n{}\n")
    process.call(1, "ask_person", questions())
    reply = process.reply(1)
    said = outcome(reply)
    if trouble == "no server":
        assert reply["result"]["isError"] and "can't be reached" in str(said["message"])
    elif trouble == "another token":
        assert reply["result"]["isError"] and said["error"] == "unauthenticated"
        assert "chips connect" in str(said["message"])
    else:
        assert said["status"] == "pending"
    process.close()
    while line := process.lines.get(timeout=LIMIT):
        assert json.loads(line)["jsonrpc"] == "2.0"
    until("the log", lambda: process.errors)


def test_without_a_server_to_speak_to_it_says_how_to_name_one(server: Server) -> None:
    target = server.stdio()
    for name in ("CHIPS_URL", "CHIPS_TOKEN"):
        target.env.pop(name)
    process = Process(target)
    assert process.process.wait(LIMIT) == 1
    assert process.lines.get(timeout=LIMIT) == "", "nothing on standard output"
    assert "chips connect" in "".join(until("a word on standard error", lambda: process.errors))
