"""Every operation of the client, once, without I/O. `chips._clients` is made from the public ones of `Operations`."""

from __future__ import annotations

import json
import logging
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from chips import _ids
from chips._backoff import Backoff, retry_after
from chips._decode import Mismatch, decode
from chips._op import Emit, Feed, Lost, Op, Open, Read, Request, Response, Send, Sleep
from chips._sse import Parser
from chips.errors import ChipsError, NotConfigured, Refused, StillOpen, UnexpectedReply, Unreachable, refusal
from chips.outcome import Outcome, outcome_of
from chips.types import (
    Answer,
    Answers,
    AnsweredEvent,
    Ask,
    AskEvent,
    AskRef,
    AsksPage,
    Event,
    EventsPage,
    EventType,
    Me,
    OnNoAnswer,
    Position,
    Problem,
    Question,
    Run,
    Stored,
    answers_of,
)

__all__ = ["Operations", "Settings"]

log = logging.getLogger("chips")

T = TypeVar("T")
E = TypeVar("E", bound=Event)

SLICE = 50
"""The longest that one request waits for an answer, in seconds: under the minute after which proxies cut."""
GRACE = 15.0
"""How much longer than asked for a reply may take before the connection counts as dead."""
STREAM_SILENCE = 45.0
"""The stream says something every 15 s; three times nothing is a dead connection."""
LEASE = 180
"""The lease of a run that `ask_and_wait` opens by itself, in seconds: each request of its wait renews it."""
TIDY = 5.0
"""How long to try to end a run that has no open ask any more, in seconds."""
PATIENCE = 300.0
"""The longest that a server's wish to be left alone is heeded in one go, in seconds."""
PASSING = frozenset({408, 425, 500, 502, 503, 504})
"""Statuses that the same request may get over: the server starts, a proxy lost it."""


@dataclass(frozen=True)
class Settings:
    """What the operations need to know."""

    run: str | None = None
    retry_for: float | None = 300.0
    first_delay: float = 0.25
    longest_delay: float = 15.0
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    random: Callable[[], float] = random.random


class Operations:
    """The operations. Each is carried out by a driver."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._me: Me | None = None

    # -- who and what ------------------------------------------------------------------------------------------

    def me(self) -> Op[Me]:
        """Who the token speaks for, in which workspace, and how much of its budget is used."""
        self._me = yield from self._get(Me, "/v1/me")
        return self._me

    def open_run(
        self,
        title: str | None = None,
        *,
        run_id: str | None = None,
        space: str | None = None,
        url: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: Run | str | None = None,
        lease_seconds: float | None = None,
    ) -> Op[Run]:
        """Opens a run: one piece of work, to which asks belong.

        `title` is what people call it, `url` (http or https) where to look at it, `labels` at most 16 texts, for which
        `chips.here()` is a good start. With `lease_seconds` its open asks are shown apart once nothing was heard of the
        run for so long. `run_id` (`chips.new_run_id()`) makes it the same run again after a restart of your program.
        """
        said = {
            "run_id": run_id or _ids.new_run_id(),
            "title": title,
            "space_id": space,
            "url": url,
            "labels": dict(labels) if labels is not None else None,
            "parent_run_id": _run_id(parent) if parent is not None else None,
            "lease_seconds": _seconds(lease_seconds, "lease_seconds") if lease_seconds is not None else None,
        }
        body = _body({name: value for name, value in said.items() if value is not None})
        return (yield from self._post(Run, "/v1/runs", body))

    def get_run(self, run: Run | str) -> Op[Run]:
        """The run as it stands."""
        return (yield from self._get(Run, f"/v1/runs/{_segment(_run_id(run))}"))

    def end_run(self, run: Run | str) -> Op[Run]:
        """Ends the run. Its open asks close as withdrawn. Ending it twice does nothing."""
        return (yield from self._post(Run, f"/v1/runs/{_segment(_run_id(run))}/end", None))

    # -- asking ------------------------------------------------------------------------------------------------

    def ask(
        self,
        questions: Question | Sequence[Question],
        *,
        run: Run | str | None = None,
        timeout_seconds: float | None = None,
        on_no_answer: OnNoAnswer | None = None,
        ask_id: str | None = None,
        idempotency_key: str | None = None,
        agent: str | None = None,
    ) -> Op[Stored[AskEvent]]:
        """Asks people one to four questions, and returns as soon as the ask is in the log.

        Without `timeout_seconds` it stays open until somebody answers. With it, Chips closes the ask when that time has
        passed, and `on_no_answer` says what you do then. The same bytes are sent again for as long as the network or the
        server fails, so there is never a second ask. `ask_id` (`chips.new_ask_id()`) makes it the same ask again after a
        restart of your program. `agent` is the id of the agent that asks through this harness.

        Raises `InvalidEvent` with every fault, `OverBudget`, `RunEnded`, `Unreachable`.
        """
        listed = [questions] if isinstance(questions, Question) else list(questions)
        names = [question.question_id for question in listed]
        if len(set(names)) < len(names):
            raise ValueError(f"two questions have the same id ({', '.join(names)}): give each its own `id`")
        event: dict[str, object] = {
            "type": "question.ask",
            "run_id": self._run_of(run),
            "ask_id": ask_id or _ids.new_ask_id(),
            "questions": [question.to_json() for question in listed],
        }
        if timeout_seconds is not None:
            event["timeout_seconds"] = _seconds(timeout_seconds, "timeout_seconds")
        if on_no_answer is not None:
            event["on_no_answer"] = on_no_answer
        return (yield from self._write(AskEvent, event, agent, idempotency_key))

    def get_ask(self, ask: AskRef) -> Op[Ask]:
        """The ask as it stands."""
        return (yield from self._get(Ask, f"/v1/asks/{_segment(_ask_id(ask))}"))

    def wait(self, ask: AskRef, *, timeout: float | None = None) -> Op[Outcome]:
        """Waits until the ask is closed, for ever unless told otherwise: over restarts of the server and dead networks.

        `timeout` is how long you are willing to wait, in seconds; it does not touch the ask. When it passes, `StillOpen`
        is raised, which is nobody's answer. Returns `Answered`, `Settled`, `TimedOut` or `Withdrawn`.
        """
        ask_id = _ask_id(ask)
        until = None if timeout is None else self._settings.clock() + timeout
        backoff = self._backoff()
        seen: Ask | None = None
        while True:
            started = self._settings.clock()
            left = SLICE if until is None else max(0, min(SLICE, math.ceil(until - started)))
            request = Request(
                "GET", f"/v1/asks/{_segment(ask_id)}", (("wait", str(left)),), read_timeout=left + GRACE
            )
            try:
                response = yield from self._send(request, until, patient=True)
                seen = _decoded(Ask, response)
            except Unreachable as error:
                if timeout is None:
                    raise
                raise StillOpen(ask_id, timeout, seen) from error
            outcome = outcome_of(seen)
            if outcome is not None:
                return outcome
            now = self._settings.clock()
            if until is not None and now >= until:
                assert timeout is not None
                raise StillOpen(ask_id, timeout, seen)
            if now - started >= min(1.0, left / 2):
                backoff.reset()
            else:  # it came back at once: the server is about to stop
                pause = backoff.next()
                yield Sleep(pause if until is None else min(pause, until - now))

    def ask_and_wait(
        self,
        questions: Question | Sequence[Question],
        *,
        run: Run | str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        on_no_answer: OnNoAnswer | None = None,
        ask_id: str | None = None,
        agent: str | None = None,
        wait_timeout: float | None = None,
    ) -> Op[Outcome]:
        """Asks and waits until the ask is closed, for ever unless told otherwise.

        Without `run` (and without a run of the client, or `CHIPS_RUN`) it opens one of its own, called `title` and with
        `labels`, and ends it after. Interrupted, or past `wait_timeout` (`StillOpen`), the ask stays open: the same call
        with the same `ask_id` takes it up again, `withdraw` takes it back.
        """
        ask_id = ask_id or _ids.new_ask_id()
        own_run: str | None = None
        if run is None and self._settings.run is None:
            own_run = _ids.same_ulid("run_", ask_id)
            yield from self.open_run(title, run_id=own_run, labels=labels, lease_seconds=LEASE)
        try:
            try:
                stored = yield from self.ask(
                    questions,
                    run=own_run or run,
                    timeout_seconds=timeout_seconds,
                    on_no_answer=on_no_answer,
                    ask_id=ask_id,
                    agent=agent,
                )
            except (Refused, ValueError):
                yield from self._tidy(own_run)
                raise
            outcome = yield from self.wait(stored, timeout=wait_timeout)
        except Exception:
            raise
        except BaseException:
            log.warning("interrupted: %s may be open; the same ask_id takes it up again", ask_id)
            raise
        yield from self._tidy(own_run)
        return outcome

    def _tidy(self, run: str | None) -> Op[None]:
        """Ends a run that was opened for one ask. What came of the ask counts more than whether this works."""
        if run is None:
            return
        request = Request("POST", f"/v1/runs/{run}/end")
        try:
            yield from self._send(request, self._settings.clock() + TIDY)
        except ChipsError as error:
            log.warning("%s could not be ended: %s", run, error)

    # -- answering ---------------------------------------------------------------------------------------------

    def answer(
        self,
        ask: AskRef,
        answers: Answers,
        *,
        idempotency_key: str | None = None,
    ) -> Op[Stored[AnsweredEvent]]:
        """Answers as a person, with a person's token. Values by question id, or `Answer`s.

        Raises `AlreadyClosed` where somebody was first, `InvalidEvent` where the answer does not fit the question.
        """
        me = yield from self._known()
        if me.participant.kind != "person":
            raise NotConfigured("`answer` speaks for a person, and this token is a harness's: use `settle`")
        return (yield from self._close(ask, answers_of(answers), None, None, idempotency_key))

    def settle(
        self,
        ask: AskRef,
        answers: Answers,
        *,
        timed_out: bool = False,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Op[Stored[AnsweredEvent]]:
        """Answers your own question, because it was answered in your own tools.

        `timed_out` says that nobody answered there either, and that these are the defaults you took.
        """
        listed = answers_of(answers)
        if not listed and not timed_out:
            raise ValueError("to settle without an answer is to withdraw: use `withdraw`")
        me = yield from self._known()
        if me.participant.kind != "harness":
            raise NotConfigured("`settle` speaks for a harness, and this token is a person's: use `answer`")
        return (yield from self._close(ask, listed, True if timed_out else None, agent, idempotency_key))

    def withdraw(
        self,
        ask: AskRef,
        *,
        agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Op[Stored[AnsweredEvent]]:
        """Takes your own question back. Raises `AlreadyClosed`, with what closed it, where somebody was first."""
        me = yield from self._known()
        if me.participant.kind != "harness":
            raise NotConfigured("only the harness that asked can withdraw, and this token is a person's")
        return (yield from self._close(ask, [], None, agent, idempotency_key))

    def acknowledge(self, ask: AskRef | Outcome) -> Op[Ask]:
        """Says that you have acted on the answer. The first time stands."""
        ask_id = ask.ask_id if isinstance(ask, Outcome) else _ask_id(ask)
        return (yield from self._post(Ask, f"/v1/asks/{_segment(ask_id)}/ack", None))

    # -- reading -----------------------------------------------------------------------------------------------

    def asks(
        self,
        *,
        state: str | None = None,
        space: str | None = None,
        run: Run | str | None = None,
        harness: str | None = None,
        label: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> Op[AsksPage]:
        """A page of asks.

        `state` is one state, `open` or `closed`; `label` is `key:value`; `q` is text to look for; `before` is the `next`
        of the page before. Open asks come with the most urgent first, others newest first.
        """
        query = _query(
            state=state,
            space_id=space,
            run_id=_run_id(run) if run is not None else None,
            harness_id=harness,
            label=label,
            q=q,
            limit=limit,
            before=before,
        )
        return (yield from self._get(AsksPage, "/v1/asks", query))

    def events(
        self,
        *,
        after: int = 0,
        log: str | None = None,
        limit: int | None = None,
        type: EventType | None = None,
        run: Run | str | None = None,
        ask: AskRef | None = None,
    ) -> Op[EventsPage]:
        """A page of the log, in the order of `seq`. Raises `CursorLost` where `log` is another history than the server's."""
        query = _filters(type, run, ask)
        return (yield from self._get(EventsPage, "/v1/events", _query(after=after, log=log, limit=limit) + query))

    def head(self) -> Op[Position]:
        """Where the log ends now: hand it to `stream` to read what comes from here on."""
        page = yield from self.events(limit=1)
        return Position(page.head, page.log)

    def stream(
        self,
        *,
        after: Position | int | None = None,
        type: EventType | None = None,
        run: Run | str | None = None,
        ask: AskRef | None = None,
    ) -> Feed[Event]:
        """The log as it grows, each event once and in order, over restarts of the server and dead networks.

        Starts after `after` (a `seq`, or a `Position`), else with what comes from now on. To go on in another process,
        keep the `log` of `head()` and the `seq` of the last event that you have dealt with. Raises `CursorLost` where
        the log was restored meanwhile, rather than skip anything.
        """
        query = _filters(type, run, ask)
        if isinstance(after, Position):
            seq, history = after.seq, after.log
        else:
            page = yield from self.events(after=after or 0, limit=1)
            seq, history = page.head if after is None else after, page.log
        backoff = self._backoff()
        # The first connection has to work within `retry_for`; one that worked once is come back to for ever.
        until = self._until()
        while True:
            where = _query(after=seq, log=history) + query
            request = Request("GET", "/v1/events/stream", where, None, STREAM_SILENCE, "text/event-stream")
            response: Response | None = None
            try:
                response = yield Open(request)
                assert isinstance(response, Response)
                if response.status != 200:
                    raise _passing(response, until is None)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    raise Lost("the reply is no event stream")
                until = None
                parser = Parser()
                while piece := (yield Read()):
                    assert isinstance(piece, bytes)
                    backoff.reset()
                    for message in parser.feed(piece):
                        event = _event(message.data)
                        if event.seq is not None and event.seq > seq:
                            seq = event.seq
                            yield Emit(event)
                raise Lost("the stream ended")
            except Lost as lost:
                pause = self._pause(backoff, lost, response, until, "the stream of events")
            yield Sleep(pause)

    # -- underneath --------------------------------------------------------------------------------------------

    def _backoff(self) -> Backoff:
        settings = self._settings
        return Backoff(settings.first_delay, settings.longest_delay, settings.random)

    def _until(self) -> float | None:
        retry_for = self._settings.retry_for
        return None if retry_for is None else self._settings.clock() + retry_for

    def _run_of(self, run: Run | str | None) -> str:
        if run is not None:
            return _run_id(run)
        if self._settings.run is not None:
            return self._settings.run
        raise NotConfigured("an ask belongs to a run: pass `run` (see `open_run`), or set CHIPS_RUN")

    def _known(self) -> Op[Me]:
        """`me`, remembered."""
        return self._me if self._me is not None else (yield from self.me())

    def _get(self, kind: type[T], path: str, query: tuple[tuple[str, str], ...] = ()) -> Op[T]:
        response = yield from self._send(Request("GET", path, query), self._until())
        return _decoded(kind, response)

    def _post(self, kind: type[T], path: str, body: bytes | None) -> Op[T]:
        response = yield from self._send(Request("POST", path, body=body), self._until())
        return _decoded(kind, response)

    def _write(self, kind: type[E], event: dict[str, object], agent: str | None, key: str | None) -> Op[Stored[E]]:
        """Posts an event with an id and a key of its own; the bytes are made once, and sent until they are answered."""
        me = yield from self._known()
        actor = {"kind": "agent", "id": agent} if agent else {"kind": me.participant.kind, "id": me.participant.id}
        body = _body(
            {
                "v": 1,
                "id": _ids.new_event_id(),
                "workspace_id": me.workspace_id,
                "actor": actor,
                "idempotency_key": key or _ids.new_key(),
                **event,
            }
        )
        response = yield from self._send(Request("POST", "/v1/events", body=body), self._until())
        return Stored(
            _decoded(kind, response),
            replayed=response.headers.get("idempotency-replayed") == "true",
            body_differs=response.headers.get("idempotency-body-differs") == "true",
        )

    def _close(
        self,
        ask: AskRef,
        answers: Sequence[Answer],
        timed_out: bool | None,
        agent: str | None,
        key: str | None,
    ) -> Op[Stored[AnsweredEvent]]:
        if isinstance(ask, str):
            ask = yield from self.get_ask(ask)
        run_id = ask.event.run_id if isinstance(ask, Stored) else ask.run_id
        event: dict[str, object] = {
            "type": "question.answered",
            "run_id": run_id,
            "ask_id": ask.ask_id,
            "answers": [answer.to_json() for answer in answers],
        }
        if timed_out is not None:
            event["timed_out"] = timed_out
        return (yield from self._write(AnsweredEvent, event, agent, key))

    def _send(self, request: Request, until: float | None, patient: bool = False) -> Op[Response]:
        """Sends until there is an answer that another try would not change. Raises `Refused`, `Unreachable`.

        `until` is when to give up, by the monotonic clock. A `patient` one gives up with `Unreachable` alone.
        """
        backoff = self._backoff()
        what = f"{request.method} {request.path}"
        while True:
            response: Response | None = None
            try:
                response = yield Send(request)
                assert isinstance(response, Response)
                if 200 <= response.status < 300 and _is_json(response):
                    return response
                raise _passing(response, patient)
            except Lost as lost:
                pause = self._pause(backoff, lost, response, until, what, patient)
            yield Sleep(pause)

    def _pause(
        self,
        backoff: Backoff,
        lost: Lost,
        response: Response | None,
        until: float | None,
        what: str,
        patient: bool = False,
    ) -> float:
        """How long to wait before the next try; raises where there is to be none."""
        asked_for = None
        if response is not None:
            asked_for = retry_after(response.headers.get("retry-after"), self._settings.wall_clock())
        left = math.inf if until is None else until - self._settings.clock()
        hurried = asked_for is not None and asked_for > left and not patient
        if lost.hopeless or left <= 0 or hurried:
            problem = _problem(response) if response is not None and not patient else None
            if problem is not None:
                raise refusal(problem, asked_for)
            raise Unreachable(f"{what}: {lost} (given up after {backoff.failures + 1} tries)") from lost
        delay = min(left, backoff.next(None if asked_for is None else min(asked_for, PATIENCE)))
        # The 1st, 2nd, 4th, 8th … failure in a row: heard, but not all night.
        loud = backoff.failures & (backoff.failures - 1) == 0
        log.log(logging.WARNING if loud else logging.DEBUG, "%s: %s; again in %.1f s", what, lost, delay)
        return delay


def _is_json(response: Response) -> bool:
    return response.headers.get("content-type", "").partition(";")[0].strip() == "application/json"


def _problem(response: Response) -> Problem | None:
    """The problem in this reply, or nothing where it is not Chips' own."""
    if response.headers.get("content-type", "").partition(";")[0].strip() != "application/problem+json":
        return None
    try:
        return decode(Problem, json.loads(response.body))
    except ValueError:
        return None


def _passing(response: Response, patient: bool) -> Lost:
    """Why this reply is worth another try. Raises where it is not.

    A `patient` request waits until Chips itself says something: a page of a proxy, a log-in page of a network that is
    not on yet, or a 404 of whatever answers while the server is moved is no reply then. Others tell at once that it is
    not Chips that answers, so that a wrong address is noticed at the first call.
    """
    problem = _problem(response)
    what = f"status {response.status}"
    if response.status in PASSING:
        return Lost(f"{what} ({problem.detail})" if problem is not None else what)
    if problem is not None:
        if patient and problem.code == "rate_limited":
            return Lost(problem.detail)
        raise refusal(problem, retry_after(response.headers.get("retry-after"), time.time()))
    if patient:
        return Lost(f"{what} with {response.headers.get('content-type') or 'no content type'}, which is not Chips' own")
    if 300 <= response.status < 400:
        to = response.headers.get("location", "nowhere")
        raise UnexpectedReply(f"{what}: it redirects to {to}; redirects are not followed, give that address")
    excerpt = response.body[:200].decode("utf-8", "replace")
    raise UnexpectedReply(f"{what} that is not Chips' own; is the address right? {excerpt!r}")


def _decoded(kind: type[T], response: Response) -> T:
    try:
        return decode(kind, json.loads(response.body))
    except Mismatch as error:
        raise UnexpectedReply(f"a reply of another shape than {kind.__name__}: {error}") from None
    except ValueError as error:
        raise UnexpectedReply(f"a reply that is no JSON: {error}") from None


def _event(data: str) -> Event:
    try:
        return decode(Event, json.loads(data))
    except ValueError as error:
        raise UnexpectedReply(f"the stream holds something that is no event: {error}") from None


def _body(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text with an unpaired surrogate can't be sent: {error}") from None


def _seconds(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"`{name}` is a number of seconds over 0, not {value!r}")
    return int(value) if float(value).is_integer() else value


def _query(**members: object) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in members.items() if value is not None)


def _filters(
    type: EventType | None, run: Run | str | None, ask: AskRef | None
) -> tuple[tuple[str, str], ...]:
    return _query(
        type=type,
        run_id=_run_id(run) if run is not None else None,
        ask_id=_ask_id(ask) if ask is not None else None,
    )


def _segment(text: str) -> str:
    """An identifier as one segment of a path, whatever somebody passed for it."""
    if not text or text in (".", ".."):
        raise ValueError(f"{text!r} is no identifier")
    return quote(text, safe="")


def _run_id(run: Run | str) -> str:
    return run if isinstance(run, str) else run.run_id


def _ask_id(ask: AskRef) -> str:
    return ask if isinstance(ask, str) else ask.ask_id
