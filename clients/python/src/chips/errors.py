"""What can go wrong, as types. A refusal carries Chips' own words: `error.problem`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chips.types import AnsweredEvent, Ask, Fault, Problem, ProblemCode

if TYPE_CHECKING:
    from chips.outcome import Outcome

__all__ = [
    "AlreadyClosed",
    "ChipsError",
    "CursorLost",
    "Forbidden",
    "IdConflict",
    "InvalidEvent",
    "InvalidRequest",
    "NoChoice",
    "NotConfigured",
    "NotFound",
    "OverBudget",
    "RateLimited",
    "Refused",
    "RunEnded",
    "StillOpen",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedReply",
    "Unreachable",
]


class ChipsError(Exception):
    """Anything that this package raises on purpose, wrong arguments (`ValueError`, `TypeError`) aside."""


class NotConfigured(ChipsError):
    """The address or the token is missing or can't be used."""


class Unreachable(ChipsError):
    """Chips did not answer for as long as `retry_for` allows. The request may have arrived all the same.

    Sending it again is safe where it carries the same ids: an ask with its `ask_id`, an answer with its key.
    """


class UnexpectedReply(ChipsError):
    """A reply that is not Chips': another server at that address, or a reply of another shape."""


class StillOpen(ChipsError):
    """`wait` was told to give up after a while, and nobody has answered yet. That is no answer, and the ask stays open."""

    def __init__(self, ask_id: str, seconds: float, ask: Ask | None) -> None:
        super().__init__(
            f"{ask_id} is still open after waiting {seconds:g} s. Nobody has answered: wait again, or withdraw it."
        )
        self.ask_id = ask_id
        self.ask = ask
        """The ask as it stood at the last look, or nothing where Chips could not be reached."""


class NoChoice(ChipsError):
    """Somebody's choice was asked for where nobody chose: the ask timed out or was withdrawn."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"nobody chose: {outcome}")
        self.outcome = outcome


class Refused(ChipsError):
    """Chips said no. Nothing was appended."""

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        faults = "".join(f"\n  {fault.pointer or '/'}: {fault.message} ({fault.code})" for fault in problem.errors)
        super().__init__(f"{problem.detail or problem.title} ({problem.status} {problem.code}){faults}")
        self.problem = problem
        self.retry_after = retry_after
        """When to try again, in seconds, where Chips said so."""

    @property
    def code(self) -> ProblemCode:
        """What programs look at."""
        return self.problem.code

    @property
    def errors(self) -> tuple[Fault, ...]:
        """Every fault of the event, where it has faults."""
        return self.problem.errors


class InvalidRequest(Refused):
    """The request itself can't be read: a fault of this package, of a proxy, or of the address."""


class Unauthenticated(Refused):
    """No token, or one that is not good."""


class Forbidden(Refused):
    """This participant may not do this: a person who asks, say."""


class NotFound(Refused):
    """Unknown, or not visible with this token."""


class AlreadyClosed(Refused):
    """The ask was closed before: somebody else was first."""

    @property
    def answer(self) -> AnsweredEvent | None:
        """The event that closed it."""
        return self.problem.answer


class IdConflict(Refused):
    """The id stands for something else already."""


class RunEnded(Refused):
    """The run has ended: open another one."""


class CursorLost(Refused):
    """The place in the log does not exist any more: a restore, or it is older than what is kept. Start anew from `head`."""


class InvalidEvent(Refused):
    """The event has faults: each is in `errors`, with its place."""


class OverBudget(Refused):
    """The harness has asked as much as it may: see `retry_after`."""


class RateLimited(Refused):
    """Too many failed tokens: see `retry_after`."""


class Unavailable(Refused):
    """The store can't take writes, for longer than `retry_for` allows."""


BY_CODE: dict[ProblemCode, type[Refused]] = {
    "malformed_json": InvalidRequest,
    "duplicate_key": InvalidRequest,
    "too_deep": InvalidRequest,
    "bad_query": InvalidRequest,
    "token_in_query": InvalidRequest,
    "unauthenticated": Unauthenticated,
    "wrong_sender": Forbidden,
    "actor_mismatch": Forbidden,
    "not_found": NotFound,
    "method_not_allowed": InvalidRequest,
    "already_closed": AlreadyClosed,
    "event_id_conflict": IdConflict,
    "ask_id_conflict": IdConflict,
    "run_id_conflict": IdConflict,
    "run_ended": RunEnded,
    "cursor_ahead": CursorLost,
    "log_changed": CursorLost,
    "cursor_gone": CursorLost,
    "too_large": InvalidRequest,
    "unsupported_media_type": InvalidRequest,
    "misdirected": InvalidRequest,
    "invalid_event": InvalidEvent,
    "over_budget": OverBudget,
    "rate_limited": RateLimited,
    "unavailable": Unavailable,
}
"""The error for each code; a code that is not here yet is a plain `Refused`."""


def refusal(problem: Problem, retry_after: float | None = None) -> Refused:
    """The error for a problem."""
    return BY_CODE.get(problem.code, Refused)(problem, retry_after)
