"""How long to wait before the next try."""

from __future__ import annotations

import email.utils
from collections.abc import Callable

__all__ = ["Backoff", "retry_after"]


class Backoff:
    """Longer after each failure, and never quite the same: many clients of one server must not come back as one.

    The n-th delay lies between half of and the whole of `first * 2**n`, and of `longest` at most.
    """

    def __init__(self, first: float, longest: float, random: Callable[[], float]) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self.failures = 0

    def reset(self) -> None:
        """Something worked."""
        self.failures = 0

    def next(self, asked_for: float | None = None) -> float:
        """The delay after one more failure, in seconds: never less than what the server asked for."""
        whole = min(self._longest, self._first * 2.0 ** min(self.failures, 32))
        self.failures += 1
        delay = whole / 2 + whole / 2 * self._random()
        return delay if asked_for is None else asked_for + delay


def retry_after(value: str | None, now: float) -> float | None:
    """The `Retry-After` header in seconds: a number, or a date (`now` is the wall clock, in seconds since 1970)."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError, IndexError):
        return None
