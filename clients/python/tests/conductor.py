"""Carries operations out without a network and without waiting: the clock is the test's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from chips._core import Operations, Settings
from chips._op import Effect, Emit, Feed, Lost, Op, Open, Read, Request, Response, Send, Sleep

T = TypeVar("T")

ME = {
    "workspace_id": "ws_01K4ZQPX000000000000000001",
    "participant": {"kind": "harness", "id": "hrn_01K4ZQPX000000000000000004", "name": "builder"},
    "spaces": [{"id": "spc_01K4ZQPX000000000000000002", "name": "general"}],
    "budget": {"open": 0, "open_limit": 100, "hour": 0, "hour_limit": 600},
}
HARNESS = {"kind": "harness", "id": "hrn_01K4ZQPX000000000000000004", "name": "builder"}
PERSON = {"kind": "person", "id": "usr_01K4ZQPX000000000000000003", "name": "alice"}
SYSTEM = {"kind": "system", "id": "system", "name": "Chips"}
RUN = "run_01K4ZQPX000000000000000005"
ASK = "qst_01K4ZQPX000000000000000009"
AT = "2026-09-02T14:22:05.004Z"


def json_reply(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    kind = "application/json" if status < 400 else "application/problem+json"
    return Response(status, {"content-type": kind, **(headers or {})}, json.dumps(body).encode())


def problem(status: int, code: str, headers: Mapping[str, str] | None = None, **members: object) -> Response:
    body = {"type": f"/problems/{code}", "title": code, "status": status, "detail": f"it is {code}", "code": code}
    return json_reply({**body, **members}, status, headers)


def ask_event(**members: object) -> dict[str, Any]:
    event: dict[str, Any] = {
        "v": 1,
        "type": "question.ask",
        "id": "evt_01K4ZQPX000000000000000069",
        "ts": AT,
        "workspace_id": ME["workspace_id"],
        "actor": {"kind": "harness", "id": HARNESS["id"]},
        "run_id": RUN,
        "seq": 1,
        "ask_id": ASK,
        "questions": [
            {
                "question_id": "question",
                "prompt": "Ship it?",
                "options": [{"value": "yes", "label": "Ship"}, {"value": "no", "label": "Hold"}],
            }
        ],
    }
    return {**event, **members}


def answered_event(answers: list[dict[str, object]], by: Mapping[str, str] = PERSON, **members: object) -> dict[str, Any]:
    event: dict[str, Any] = {
        "v": 1,
        "type": "question.answered",
        "id": "evt_01K4ZQPX000000000000000077",
        "ts": AT,
        "workspace_id": ME["workspace_id"],
        "actor": {"kind": by["kind"], "id": by["id"]},
        "run_id": RUN,
        "seq": 2,
        "ask_id": ASK,
        "answers": answers,
        "answered_by": by["id"],
        "answered_at": AT,
    }
    return {**event, **members}


YES: list[dict[str, object]] = [{"question_id": "question", "values": ["yes"]}]


def ask_json(state: str = "open", by: Mapping[str, str] | None = None, answers: Any = (), **members: Any) -> dict[str, Any]:
    """An ASK as Chips sends it."""
    closed = state != "open"
    by = by or PERSON
    body: dict[str, Any] = {
        "ask_id": ASK,
        "state": state,
        "tier": "time_sensitive",
        "deadline": None,
        "asker": HARNESS,
        "answerer": by if closed else None,
        "asker_gone": False,
        "reachable": True,
        "ask": ask_event(),
        "answer": answered_event(list(answers), by, timed_out=state == "timed_out") if closed else None,
        "option_labels": {"question": {"yes": "Ship", "no": "Hold"}},
        "late_answers": [],
        "delivered_at": None,
        "acknowledged_at": None,
    }
    return {**body, **members}


def run_json(**members: Any) -> dict[str, Any]:
    body: dict[str, Any] = dict.fromkeys(
        ("space_id", "title", "url", "parent_run_id", "ended_at", "lease_seconds", "lease_until")
    )
    body |= {"run_id": RUN, "harness_id": HARNESS["id"], "labels": {}, "state": "live", "started_at": AT}
    return {**body, **members}


class Conductor:
    """Answers an operation's effects out of a list of steps, in order; `me` is answered by itself."""

    def __init__(self, *steps: Any, **settings: Any) -> None:
        self.now = 1000.0
        self.steps = list(steps)
        self.requests: list[Request] = []
        self.sleeps: list[float] = []
        self.pieces: list[bytes | Lost] = []
        settings.setdefault("random", lambda: 1.0)
        self.ops = Operations(Settings(clock=lambda: self.now, wall_clock=lambda: self.now, **settings))

    def drive(self, op: Op[T]) -> T:
        """Carries an operation to its end."""
        try:
            effect = next(op)
            while True:
                effect = self._step(op, effect)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def take(self, op: Feed[T], count: int) -> list[T]:
        """The first things that a feed emits."""
        emitted: list[T] = []
        effect = next(op)
        while len(emitted) < count:
            if isinstance(effect, Emit):
                emitted.append(effect.value)
                if len(emitted) < count:
                    effect = op.send(None)
            else:
                effect = self._step(op, effect)
        op.close()
        return emitted

    def sent(self, path: str) -> list[Request]:
        """The requests for this path."""
        return [request for request in self.requests if request.path == path]

    def _step(self, op: Any, effect: Effect) -> Effect:
        try:
            came = self._perform(effect)
        except Exception as error:
            return op.throw(error)  # type: ignore[no-any-return]
        return op.send(came)  # type: ignore[no-any-return]

    def _perform(self, effect: Effect) -> object:
        if isinstance(effect, Sleep):
            assert effect.seconds > 0
            self.sleeps.append(effect.seconds)
            self.now += effect.seconds
            return None
        if isinstance(effect, Read):
            piece = self.pieces.pop(0) if self.pieces else b""
            if isinstance(piece, Lost):
                raise piece
            return piece
        assert isinstance(effect, (Send, Open))
        if effect.request.path == "/v1/me":
            return json_reply(ME)
        self.requests.append(effect.request)
        assert self.steps, f"one request too many: {effect.request}"
        step = self.steps.pop(0)
        if callable(step):
            step = step(effect.request)
        if isinstance(step, Lost):
            raise step
        if isinstance(effect, Open):
            return self._open(step)
        return step

    def _open(self, step: Any) -> Response:
        if isinstance(step, Response):
            return step
        self.pieces = list(step)
        return Response(200, {"content-type": "text/event-stream"})


def sse(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Events as the stream sends them."""
    return b"".join(
        f"id: {event['seq']}\nevent: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
        for event in events
    )
