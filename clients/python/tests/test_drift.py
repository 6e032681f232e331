"""Holds this package against what the project says of itself: its schemas, its OpenAPI document, its test vectors."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import chips
from chips import _core, _decode, errors
from chips._op import Request, Response
from tests.conductor import ASK, RUN, Conductor, ask_json, json_reply, run_json

ROOT = Path(__file__).resolve().parents[3]
OPENAPI = json.loads((ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8"))
COMPONENTS = OPENAPI["components"]["schemas"]

KINDS: dict[str, type[Any]] = {
    "Answer": chips.Answer,
    "Ask": chips.Ask,
    "AsksPage": chips.AsksPage,
    "Budget": chips.Budget,
    "EventsPage": chips.EventsPage,
    "Fault": chips.Fault,
    "LateAnswer": chips.LateAnswer,
    "Me": chips.Me,
    "Named": chips.Participant,
    "Problem": chips.Problem,
    "QuestionAnsweredEvent": chips.AnsweredEvent,
    "QuestionAskEvent": chips.AskEvent,
    "Run": chips.Run,
    "SpaceName": chips.SpaceName,
}
WORDS: dict[str, Any] = {
    "AskState": chips.AskState,
    "FaultCode": chips.FaultCode,
    "ParticipantKind": chips.ParticipantKind,
    "ProblemCode": chips.ProblemCode,
    "RunState": chips.RunState,
    "Tier": chips.Tier,
}


class Comparison:
    """Compares a JSON Schema with annotations, and says every difference with its place."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.differences: list[str] = []
        self.compared: set[str] = set()

    def shape(self, schema: Mapping[str, Any], kind: type[Any], place: str) -> None:
        fields = _decode.fields_of(kind)
        self.same(set(fields), set(schema["properties"]), f"{place}: fields")
        ours = {name for name, (_, required) in fields.items() if required}
        self.same(ours, set(schema.get("required", ())), f"{place}: required fields")
        for name, (hint, _) in fields.items():
            if name in schema["properties"]:
                self.value(schema["properties"][name], hint, f"{place}/{name}")

    def value(self, schema: Mapping[str, Any], hint: Any, place: str) -> None:
        schema, nullable = self.plain(schema)
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        optional = origin in (typing.Union, types.UnionType)
        if optional:
            (hint,) = (each for each in inner if each is not type(None))
            origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if nullable and not optional:
            self.differences.append(f"{place}: may be null")
        words = _words(schema)
        if words:
            known = set(inner) if origin is typing.Literal else words if hint in (int, str) else {hint}
            self.same(words & known if "const" in schema else known, words, f"{place}: words")
        elif schema.get("type") == "array":
            self.same(origin, tuple, place)
            self.value(schema["items"], inner[0], f"{place}[]")
        elif schema.get("type") == "object" and "properties" not in schema:
            self.same(typing.get_origin(hint).__name__ if origin else hint, "Mapping", place)
            self.value(schema["additionalProperties"], inner[1], f"{place}{{}}")
        elif schema.get("type") == "object" or "oneOf" in schema:
            self.nested(schema, hint, place)
        else:
            kinds = {"string": (str, datetime.datetime), "integer": (int,), "number": (float,), "boolean": (bool,)}
            expected = kinds[schema["type"]]
            if schema.get("format") == "date-time":
                expected = (datetime.datetime,)
            if hint not in expected:
                self.differences.append(f"{place}: {hint}, not {schema['type']}")

    def nested(self, schema: Mapping[str, Any], hint: Any, place: str) -> None:
        if "oneOf" in schema:
            self.same(hint, chips.Event, place)
        elif hint is not chips.Event and place not in self.compared:
            self.compared.add(place)
            self.shape(schema, hint, place)

    def plain(self, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """The schema behind a reference, and whether null may stand there too."""
        nullable = False
        while True:
            if "$ref" in schema:
                target: Any = self.root
                for step in schema["$ref"].removeprefix("#/").split("/"):
                    target = target[step]
                schema = target
            elif "anyOf" in schema and {"type": "null"} in schema["anyOf"]:
                (schema,) = (each for each in schema["anyOf"] if each != {"type": "null"})
                nullable = True
            elif isinstance(schema.get("type"), list):
                (kind,) = set(schema["type"]) - {"null"}
                schema, nullable = {**schema, "type": kind}, True
            else:
                return schema, nullable

    def same(self, ours: object, theirs: object, place: str) -> None:
        if ours != theirs:
            self.differences.append(f"{place}: {ours} here, {theirs} there")


@pytest.mark.parametrize("name", KINDS)
def test_the_types_have_the_fields_of_the_openapi_document(name: str) -> None:
    comparison = Comparison(OPENAPI)
    comparison.shape(comparison.plain(COMPONENTS[name])[0], KINDS[name], name)
    assert comparison.differences == []


def test_every_shape_of_the_openapi_document_is_known_here() -> None:
    others = {"AnyEvent", "NewRun"}  # a union, and what `open_run` writes (compared below)
    assert set(COMPONENTS) == set(KINDS) | set(WORDS) | others


@pytest.mark.parametrize("name", WORDS)
def test_the_words_are_those_of_the_openapi_document(name: str) -> None:
    assert set(typing.get_args(WORDS[name])) == _words(COMPONENTS[name])


def _words(schema: Mapping[str, Any]) -> set[str]:
    """The words of a closed list, in any of the three ways that a schema spells one; none where it is no such list."""
    listed = [_words(each) for each in schema.get("oneOf", ())]
    found: set[str] = set(schema.get("enum", [schema["const"]] if "const" in schema else ()))
    return found.union(*listed)


@pytest.mark.parametrize(("name", "kind"), [("question.ask", chips.AskEvent), ("question.answered", chips.AnsweredEvent)])
def test_the_events_have_the_fields_of_their_schemas(name: str, kind: type[chips.Event]) -> None:
    schema = json.loads((ROOT / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    comparison = Comparison(schema)
    comparison.shape(schema, kind, name)
    assert comparison.differences == []
    assert name in typing.get_args(chips.EventType)


def test_a_difference_is_found() -> None:
    """The comparison itself: each kind of drift is told."""

    @dataclasses.dataclass
    class Drifted:
        id: int
        gone: str
        kind: typing.Literal["person"]
        name: str | None = None

    comparison = Comparison(OPENAPI)
    comparison.shape(COMPONENTS["Named"], Drifted, "Named")
    told = "\n".join(comparison.differences)
    for place in ("Named: fields", "Named: required", "Named/id: <class 'int'>, not string", "Named/kind: words"):
        assert place in told
    nullable = Comparison(OPENAPI)
    nullable.value({"type": ["string", "null"]}, str, "x")
    assert nullable.differences == ["x: may be null"]


def test_every_problem_has_an_error_of_its_own_kind() -> None:
    assert set(errors.BY_CODE) == _words(COMPONENTS["ProblemCode"])


def requests() -> Iterator[tuple[str, Request]]:
    """Every request that this package can send."""

    def echo(request: Request) -> Response:
        event = json.loads(request.body or b"")
        stamped = {"ts": "2026-09-02T14:22:05.004Z", "answered_by": "x", "answered_at": "2026-09-02T14:22:05.004Z"}
        return json_reply({**event, **stamped}, 201)

    page, asks = {"events": [], "head": 0, "log": "L"}, {"asks": [], "head": 0, "next": None}
    everything: dict[str, Any] = {"type": "question.ask", "run": RUN, "ask": ASK}
    filters = {"state": "open", "space": "s", "run": RUN, "harness": "h", "label": "a:b", "q": "t", "limit": 1}
    calls: dict[str, Conductor] = {}
    for name, steps, arguments in (
        ("open_run", [json_reply(run_json())], {"title": "t", "space": "s", "url": "u", "labels": {}, "parent": RUN}),
        ("get_run", [json_reply(run_json())], {"run": RUN}),
        ("end_run", [json_reply(run_json())], {"run": RUN}),
        ("ask", [echo], {"questions": chips.question("a", ["b", "c"]), "run": RUN}),
        ("get_ask", [json_reply(ask_json())], {"ask": ASK}),
        ("wait", [json_reply(ask_json("withdrawn"))], {"ask": ASK}),
        ("withdraw", [json_reply(ask_json()), echo], {"ask": ASK}),
        ("acknowledge", [json_reply(ask_json())], {"ask": ASK}),
        ("asks", [json_reply(asks)], {**filters, "before": "c"}),
        ("events", [json_reply(page)], {**everything, "after": 1, "log": "L", "limit": 1}),
    ):
        conductor = Conductor(*steps)
        conductor.drive(getattr(conductor.ops, name)(**arguments))
        calls[name] = conductor
    conductor = Conductor([b":\n\n"])
    op = conductor.ops.stream(after=chips.Position(1, "L"), **everything)
    conductor._perform(next(op))
    op.close()
    calls["stream"] = conductor
    for name, done in calls.items():
        for request in done.requests:
            yield name, request
    yield "me", Request("GET", "/v1/me")


def test_every_request_is_one_that_the_openapi_document_describes() -> None:
    seen: set[tuple[str, str]] = set()
    for name, request in requests():
        matches = [
            (path, operations[request.method.lower()])
            for path, operations in OPENAPI["paths"].items()
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.path) and request.method.lower() in operations
        ]
        # `/v1/events/stream` is no `/v1/events/{id}`: there is exactly one description.
        ((path, operation),) = matches
        seen.add((request.method, path))
        known = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        assert {key for key, _ in request.query} <= known, f"{name}: {path}"
        assert ("requestBody" in operation) == (request.body is not None), f"{name}: {path}"
        if name in ("asks", "events", "stream"):
            assert {key for key, _ in request.query} == known, f"{name}: not every filter can be said"
    described = {
        (method.upper(), path)
        for path, operations in OPENAPI["paths"].items()
        for method in operations
        if path.startswith("/v1/")
    }
    assert seen == described


def test_a_run_is_opened_with_every_field_that_there_is() -> None:
    conductor = Conductor(json_reply(run_json()))
    conductor.drive(
        conductor.ops.open_run(
            "t", space="s", url="https://ci.example", labels={"a": "b"}, parent=RUN, lease_seconds=60
        )
    )
    assert set(json.loads(conductor.requests[0].body or b"")) == set(COMPONENTS["NewRun"]["properties"])


def test_a_slice_of_waiting_is_one_that_the_server_takes() -> None:
    (wait,) = (
        each for each in OPENAPI["paths"]["/v1/asks/{ask_id}"]["get"]["parameters"] if each["name"] == "wait"
    )
    assert wait["schema"]["minimum"] == 0 and _core.SLICE <= wait["schema"]["maximum"]
    assert _core.SLICE <= 50, "proxies cut after a minute"


# -- vectors -----------------------------------------------------------------------------------------------------------


def vectors(folder: str, *forms: str) -> list[Any]:
    listed = []
    for path in sorted((ROOT / "vectors" / folder).glob("*.json")):
        vector = json.loads(path.read_text(encoding="utf-8"))
        if vector["form"] in forms:
            listed.append(pytest.param(vector, id=path.stem))
    assert listed, f"no vectors of {forms} in {folder}"
    return listed


def said(value: Any) -> Any:
    """JSON by what it says: absent is false, an instant is an instant however it is written."""
    if isinstance(value, dict):
        return {
            key: _decode.timestamp(each, key) if key in ("ts", "answered_at") else said(each)
            for key, each in value.items()
            if each is not False
        }
    return [said(each) for each in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """What a dataclass of this package says, as JSON."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.name != "raw"}
        return {name: plain(each) for name, each in members.items() if each is not None and each is not False}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("vector", vectors("valid", "stored"))
def test_a_stored_event_comes_through_whole(vector: Mapping[str, Any]) -> None:
    event = _decode.decode(chips.Event, vector["input"])
    assert type(event) in (chips.AskEvent, chips.AnsweredEvent)
    assert plain(event) == said(vector["input"])
    assert event.raw == vector["input"]


@pytest.mark.parametrize("vector", vectors("valid", "write"))
def test_a_write_can_be_said_with_this_package(vector: Mapping[str, Any]) -> None:
    wanted = vector["input"]
    stamped = {"ts": "2026-09-02T14:22:05.004Z", "answered_by": "x", "answered_at": "2026-09-02T14:22:05.004Z"}

    def echo(request: Request) -> Response:
        return json_reply({**json.loads(request.body or b""), **stamped}, 201)

    if wanted["type"] == "question.ask":
        conductor = Conductor(echo)
        questions = [_decode.decode(chips.Question, each) for each in wanted["questions"]]
        conductor.drive(
            conductor.ops.ask(
                questions,
                run=wanted["run_id"],
                ask_id=wanted["ask_id"],
                timeout_seconds=wanted.get("timeout_seconds"),
                on_no_answer=wanted.get("on_no_answer"),
                idempotency_key=wanted["idempotency_key"],
            )
        )
        content = {"ask_id", "questions", "timeout_seconds", "on_no_answer"}
    else:
        ask = ask_json(ask_id=wanted["ask_id"])
        ask["ask"] |= {"run_id": wanted["run_id"], "ask_id": wanted["ask_id"]}
        conductor = Conductor(json_reply(ask), echo)
        answers = [_decode.decode(chips.Answer, each) for each in wanted["answers"]]
        key = wanted["idempotency_key"]
        op = (
            conductor.ops.settle(wanted["ask_id"], answers, timed_out=wanted.get("timed_out", False), idempotency_key=key)
            if answers
            else conductor.ops.withdraw(wanted["ask_id"], idempotency_key=key)
        )
        conductor.drive(op)
        content = {"ask_id", "answers", "timed_out"}
    body = json.loads(conductor.requests[-1].body or b"")
    for name in content | {"v", "type", "run_id", "idempotency_key"}:
        assert said(body.get(name, False)) == said(wanted.get(name, False)), name
    assert set(body) <= content | {"v", "type", "id", "workspace_id", "actor", "run_id", "idempotency_key"}


@pytest.mark.parametrize("vector", vectors("valid", "run"))
def test_a_run_can_be_said_with_this_package(vector: Mapping[str, Any]) -> None:
    wanted = vector["input"]
    conductor = Conductor(json_reply(run_json()))
    names = {"space_id": "space", "parent_run_id": "parent"}
    conductor.drive(conductor.ops.open_run(**{names.get(name, name): value for name, value in wanted.items()}))
    body = json.loads(conductor.requests[0].body or b"")
    assert {**body, **wanted} == body and set(body) - set(wanted) <= {"run_id"}


@pytest.mark.parametrize("vector", vectors("valid", "raw"))
def test_bytes_are_read_as_what_they_say(vector: Mapping[str, Any]) -> None:
    assert json.loads(vector["raw"]) == vector["value"]


@pytest.mark.parametrize("vector", vectors("invalid", "stored", "write"))
def test_what_is_no_event_is_read_with_a_fault_of_its_own_or_not_at_all(vector: Mapping[str, Any]) -> None:
    """A client takes what the server sends, but never trips: it reads it, or says where it can't."""
    try:
        event = _decode.decode(chips.Event, vector["input"])
    except _decode.Mismatch as mismatch:
        assert mismatch.place == "" or mismatch.place.startswith("/")
    else:
        assert isinstance(event, chips.Event)


@pytest.mark.parametrize("vector", vectors("invalid", "stored", "write", "run"))
def test_every_fault_is_a_word_of_this_package(vector: Mapping[str, Any]) -> None:
    assert {each["code"] for each in vector["errors"]} <= set(typing.get_args(chips.FaultCode))
    for each in vector["errors"]:
        _decode.decode(chips.Fault, {**each, "message": "for people"})
