"""Identifiers: a prefix and an upper-case ULID (https://github.com/ulid/spec)."""

from __future__ import annotations

import hashlib
import secrets
import time

__all__ = ["derived", "new_ask_id", "new_event_id", "new_key", "new_run_id", "same_ulid"]

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS = 26


def _ulid(number: int) -> str:
    """The ULID of a 128-bit number: 26 digits of Crockford's base 32."""
    return "".join(_ALPHABET[(number >> (5 * place)) & 31] for place in reversed(range(_LETTERS)))


def _fresh() -> str:
    """A ULID of now, in milliseconds, and 80 random bits."""
    return _ulid((time.time_ns() // 1_000_000) << 80 | secrets.randbits(80))


def new_ask_id() -> str:
    """A fresh identifier for an ask. Mint it yourself where a restarted program must take up the same ask."""
    return f"qst_{_fresh()}"


def new_run_id() -> str:
    """A fresh identifier for a run. Mint it yourself where a restarted program must go on with the same run."""
    return f"run_{_fresh()}"


def new_event_id() -> str:
    """A fresh identifier for an event."""
    return f"evt_{_fresh()}"


def new_key() -> str:
    """A fresh idempotency key."""
    return f"py-{_fresh()}"


def derived(prefix: str, *parts: str) -> str:
    """The identifier that stands for these texts: the same texts give the same identifier in every process.

    Each text is hashed with its length, so that no two lists of texts run together.
    """
    digest = hashlib.sha256()
    for part in parts:
        piece = part.encode("utf-8", "surrogatepass")
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return prefix + _ulid(int.from_bytes(digest.digest()[:16], "big"))


def same_ulid(prefix: str, identifier: str) -> str:
    """Another kind's identifier with the ULID of this one."""
    return prefix + identifier.rpartition("_")[2]
