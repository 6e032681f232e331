"""Operations without I/O.

An operation is a generator: it yields what it needs done (send this, sleep so long) and is sent what came of it. What
to send, when to try again and how to read what comes back is written once, here and in `chips._core`; a driver that
blocks and a driver that awaits carry it out (`chips._drive`). Tests carry it out with a clock of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

__all__ = ["Call", "Effect", "Emit", "Feed", "Lost", "Op", "Open", "Read", "Request", "Response", "Send", "Sleep"]


@dataclass(frozen=True)
class Request:
    """One HTTP request. Sent again, it is the same bytes."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    read_timeout: float = 30.0
    """How long the reply may be silent, in seconds."""
    accept: str = "application/json"


@dataclass(frozen=True)
class Response:
    """One HTTP reply."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""


class Lost(Exception):
    """No whole reply came: the network, a proxy or the server failed. `hopeless` where trying again can't help."""

    def __init__(self, what: str, hopeless: bool = False) -> None:
        super().__init__(what)
        self.hopeless = hopeless


@dataclass(frozen=True)
class Send:
    """Send the request, read the whole reply. Gives a `Response`; raises `Lost`."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Send the request, keep the reply's body open where its status is 200. Gives a `Response`; raises `Lost`."""

    request: Request


@dataclass(frozen=True)
class Read:
    """The next bytes of the open reply, or nothing at its end. Raises `Lost`."""


@dataclass(frozen=True)
class Sleep:
    """Do nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Emit:
    """Hand this to whoever iterates."""

    value: Any


@dataclass(frozen=True)
class Call:
    """Call somebody else's code: the one that blocks, or the one that is awaited."""

    blocking: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


Effect: TypeAlias = "Send | Open | Read | Sleep | Emit | Call"

T = TypeVar("T")

Op: TypeAlias = Generator[Effect, Any, T]
"""An operation that comes to a `T`."""

# The same type, under a name that says that it emits `T`s on its way.
Feed: TypeAlias = Generator[Effect, Any, T]
"""An operation that emits `T`s until its reader has had enough."""
