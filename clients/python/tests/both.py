"""The same tests for both clients: an `AsyncClient` that looks like a `Client`."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import AsyncGenerator, Generator
from typing import Any, Literal, cast

import chips
from chips._core import Operations

Kind = Literal["sync", "async"]


class Blocking:
    """Runs each call of an `AsyncClient` to its end, on one event loop."""

    def __init__(self, client: chips.AsyncClient) -> None:
        self.client = client
        self.loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            came = member(*arguments, **named)
            if inspect.isasyncgen(came):
                return self._each(cast(AsyncGenerator[Any, None], came))
            return self.loop.run_until_complete(came)

        return call if inspect.ismethod(member) else member

    def _each(self, stream: AsyncGenerator[Any, None]) -> Generator[Any, None, None]:
        try:
            while True:
                try:
                    item = self.loop.run_until_complete(anext(stream))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            self.loop.run_until_complete(stream.aclose())

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self.loop.run_until_complete(self.client.close())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def open_client(kind: Kind, url: str, token: str = "chips_hk_test", **options: Any) -> chips.Client:
    """A client of this kind, that makes short pauses."""
    client: chips.Client | chips.AsyncClient
    client = chips.Client(url, token, **options) if kind == "sync" else chips.AsyncClient(url, token, **options)
    client._ops = Operations(dataclasses.replace(client._ops._settings, first_delay=0.005, longest_delay=0.05))
    return client if isinstance(client, chips.Client) else cast(chips.Client, Blocking(client))
