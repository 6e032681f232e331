"""Server-Sent Events (WHATWG HTML, section 9.2.6), from bytes in whatever pieces they come."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Message", "Parser"]

# The standard knows three line ends, and no others: text may hold U+2028, and a line must not end there.
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Message:
    """One event of a stream."""

    id: str
    event: str
    data: str


class Parser:
    """Takes bytes, gives messages. One parser for one connection."""

    def __init__(self) -> None:
        self._rest = b""
        self._first = True
        self._id = ""
        self._event = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[Message]:
        """The messages that are whole now."""
        self._rest += piece
        if self._first:
            if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
                return []
            self._rest = self._rest.removeprefix(_BOM)
            self._first = False
        whole: list[Message] = []
        start = 0
        for end in _LINE_END.finditer(self._rest):
            if end.group() == b"\r" and end.end() == len(self._rest):
                break  # perhaps half of a line end
            message = self._line(self._rest[start : end.start()].decode("utf-8", "replace"))
            start = end.end()
            if message is not None:
                whole.append(message)
        self._rest = self._rest[start:]
        return whole

    def _line(self, line: str) -> Message | None:
        if not line:
            message = Message(self._id, self._event or "message", "\n".join(self._data)) if self._data else None
            self._event, self._data = "", []
            return message
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None
