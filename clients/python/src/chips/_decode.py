"""Reading replies: JSON into the dataclasses of `chips.types`, by their annotations alone.

Fields that a dataclass does not know are ignored, and so are unknown words where a `Literal` stands: replies may gain
both. What is missing or of another type is a fault with its place, never an `AttributeError` three calls later.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import functools
import re
import types
import typing
from collections.abc import Hashable
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["Mismatch", "decode", "fields_of", "timestamp"]


class Mismatch(ValueError):
    """JSON that is not of the wanted shape: where, and what stands there."""

    def __init__(self, place: str, wanted: str, got: object) -> None:
        super().__init__(f"{place or 'the reply'}: expected {wanted}, got {_kind(got)}")
        self.place = place


_MISSING = object()


def _kind(value: object) -> str:
    if value is _MISSING:
        return "nothing"
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a text", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def decode(kind: type[T], value: object, place: str = "") -> T:
    """`value`, as it came out of the JSON reader, as a `kind`. Raises `Mismatch`."""
    return typing.cast(T, _read(kind, value, place))


def fields_of(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The fields of a dataclass that are on the wire: name to annotation and whether it must be there."""
    return _fields(typing.cast(Hashable, kind))


@functools.cache
def _fields(kind: Hashable) -> dict[str, tuple[Any, bool]]:
    assert isinstance(kind, type) and dataclasses.is_dataclass(kind)
    hints = typing.get_type_hints(kind)
    return {
        field.name: (
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
        if field.name != "raw"
    }


def _object(kind: type[Any], value: object, place: str) -> object:
    if not isinstance(value, dict):
        raise Mismatch(place, "an object", value)
    found: dict[str, object] = {}
    for name, (hint, required) in fields_of(kind).items():
        if name in value:
            found[name] = _read(hint, value[name], f"{place}/{name}")
        elif required:
            raise Mismatch(f"{place}/{name}", _wanted(hint), _MISSING)
    if any(field.name == "raw" for field in dataclasses.fields(kind)):
        found["raw"] = value
    return kind(**found)


def _wanted(hint: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "a boolean", datetime.datetime: "a time"}
    if typing.get_origin(hint) is typing.Literal:
        return "a text"
    return names.get(hint, "an array" if typing.get_origin(hint) is tuple else "an object")


def _read(hint: Any, value: object, place: str) -> object:
    origin = typing.get_origin(hint)
    if hint is Any or hint is object:
        return value
    if origin is typing.Union or origin is types.UnionType:
        return _union(typing.get_args(hint), value, place)
    if origin is typing.Literal:
        hint = str if isinstance(typing.get_args(hint)[0], str) else int
    if origin is tuple:
        if not isinstance(value, list):
            raise Mismatch(place, "an array", value)
        inner = typing.get_args(hint)[0]
        return tuple(_read(inner, each, f"{place}/{index}") for index, each in enumerate(value))
    if origin is collections.abc.Mapping:
        if not isinstance(value, dict):
            raise Mismatch(place, "an object", value)
        inner = typing.get_args(hint)[1]
        return {key: _read(inner, each, f"{place}/{key}") for key, each in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        reader = getattr(hint, "from_json", None)
        return reader(value, place) if reader is not None else _object(hint, value, place)
    return _scalar(hint, value, place)


def _union(hints: tuple[Any, ...], value: object, place: str) -> object:
    """`X | None`, or a union of kinds that read themselves by what stands in them."""
    if value is None:
        if type(None) in hints:
            return None
        raise Mismatch(place, _wanted(hints[0]), value)
    return _read(next(hint for hint in hints if hint is not type(None)), value, place)


def _scalar(hint: Any, value: object, place: str) -> object:
    if hint is datetime.datetime:
        return timestamp(value, place)
    if hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, bool) and hint is not bool:
        raise Mismatch(place, _wanted(hint), value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(hint, type) and isinstance(value, hint):
        return value
    raise Mismatch(place, _wanted(hint), value)


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-]\d\d:\d\d))", re.ASCII
)


def timestamp(value: object, place: str) -> datetime.datetime:
    """A time on the wire (RFC 3339) as an aware `datetime`, to the microsecond."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Mismatch(place, "a time (RFC 3339)", value)
    day, minute, second, fraction, offset = found.groups()
    micros = (fraction or "").ljust(6, "0")[:6]
    leap = second == "60"  # a clock of Python has none: the last instant before it
    try:
        text = f"{day}T{minute}:{'59' if leap else second}.{'999999' if leap else micros}{offset or '+00:00'}"
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Mismatch(place, "a time (RFC 3339)", value) from None
