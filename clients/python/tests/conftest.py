"""Fixtures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import chips
from tests.server import Server


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One running server for all tests that leave it running."""
    server = Server(tmp_path_factory.mktemp("chips") / "data")
    server.command("harness", "budget", server.harness_id, "--open", "none", "--hour", "none", "--data", str(server.folder))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A running server of this test's own."""
    server = Server(tmp_path / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def people(shared: Server) -> Iterator[chips.Client]:
    """A client that speaks for the shared server's harness."""
    with shared.harness() as client:
        yield client


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHIPS_URL", "CHIPS_TOKEN", "CHIPS_RUN", "CHIPS_USER_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def loop_of_this_thread() -> Iterator[None]:
    """An event loop for frameworks whose blocking calls take the thread's own, and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
