"""Runs the examples and the README's code against the real server."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chips
from tests.server import LIMIT, Server, pick, type_in
from tests.test_openai_agents import Scripted

HERE = Path(__file__).resolve().parent.parent
EXAMPLES = HERE / "examples"


def run(server: Server, program: Path, *arguments: str) -> str:
    environment = {**os.environ, "CHIPS_URL": server.url, "CHIPS_TOKEN": server.harness_token}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning:chips", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("program", "replies", "said"),
    [
        ("ask.py", [pick("26")], " chose 26\n"),
        ("ask.py", [type_in("the 20th")], " wrote: 'the 20th'\n"),
        ("ask_async.py", [pick("yes"), pick("yes")], "deploying to ['eu', 'us']\n"),
        ("langgraph_order.py", [pick("19")], "ships on: 19 September\n"),
        ("pydantic_ai_refund.py", [pick("approve")], "is refunded"),
    ],
)
def test_an_example_runs(shared: Server, program: str, replies: Any, said: str) -> None:
    with shared.somebody(*replies):
        assert said in run(shared, EXAMPLES / program)


def test_the_example_that_follows_the_log(server: Server) -> None:
    with server.harness() as client, server.somebody(pick("yes")):
        client.ask_and_wait(chips.question("Ship it?", ["yes", "no"]))
    assert run(server, EXAMPLES / "follow.py", "2").splitlines() == [
        "1 asked: Ship it?",
        f"2 closed by {server.person_id}",
    ]


def test_the_example_for_openai_agents(
    shared: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("openai_agents_refund", EXAMPLES / "openai_agents_refund.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setenv("CHIPS_URL", shared.url)
    monkeypatch.setenv("CHIPS_TOKEN", shared.harness_token)
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    with shared.somebody(pick("approve")):
        asyncio.run(example.main(Scripted(("refund", {"order": 4711}))))
    assert "order 4711 is refunded" in capsys.readouterr().out


def test_no_example_goes_untried() -> None:
    tried = set(re.findall(r"\w+\.py", Path(__file__).read_text(encoding="utf-8")))
    assert {path.name for path in EXAMPLES.glob("*.py")} <= tried


README = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_starts_with_three_lines_that_work(shared: Server, tmp_path: Path) -> None:
    program = tmp_path / "readme.py"
    program.write_text(README[0], encoding="utf-8")
    with shared.somebody(pick("yes")):
        assert "yes" in run(shared, program)


def test_the_readmes_code_is_sound(tmp_path: Path) -> None:
    """Each piece, after the lines that the README leaves out, is what mypy takes."""
    for number, piece in enumerate(README):
        (tmp_path / f"readme_{number}.py").write_text(f"{PREAMBLE}\n{piece}", encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(HERE / ".mypy_cache"), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=HERE,
        timeout=240,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


PREAMBLE = """
from typing import Any
import chips
import chips.langgraph
import chips.openai_agents
import chips.pydantic_ai
people: Any
"""
