"""The MCP Inspector's command line, as people try a server with it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import BINARY, LINKS, Server, environment, questions, until

INSPECTOR = Path(__file__).parents[1] / "npm" / "node_modules" / ".bin" / "mcp-inspector"


def node() -> int:
    found = shutil.which("node")
    if found is None:
        return 0
    return int(subprocess.run([found, "-p", "process.versions.node"], capture_output=True, text=True).stdout.split(".")[0])


pytestmark = pytest.mark.skipif(
    not INSPECTOR.exists() or node() < 20,
    reason="no MCP Inspector: it needs Node.js 20 or later, and `tests/npm/install tests/npm`",
)


def inspect(server: Server, link: str, *arguments: str) -> Any:
    token = server.harness["token"]
    way = {
        "stdio": [str(BINARY), "mcp", "-e", f"CHIPS_URL={server.url}", "-e", f"CHIPS_TOKEN={token}"],
        "http": [f"{server.url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {token}"],
    }[link]
    command = [str(INSPECTOR), "--cli", *way, *arguments]
    env = environment(HOME=str(server.home), CHIPS_MCP_SLICE="1s")
    done = subprocess.run(command, env=env, cwd=server.home, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


@pytest.mark.parametrize("link", LINKS)
def test_it_lists_and_calls_the_tools(server: Server, link: str) -> None:
    tools = inspect(server, link, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["ask_person", "wait_for_answer", "withdraw_question"]
    asked = f"questions={json.dumps(questions()['questions'])}"
    result = inspect(server, link, "--method", "tools/call", "--tool-name", "ask_person", "--tool-arg", asked)
    assert result["structuredContent"]["status"] == "pending"
    assert until("the question", server.asks)[0]["ask_id"] == result["structuredContent"]["ask_id"]
