"""Makes `src/chips/_clients.py`: the surface of both clients, out of the public operations of `chips._core`.

    python tools/surface.py          writes it
    python tools/surface.py --check  fails where it is not what it would write
"""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "src" / "chips" / "_core.py"
SURFACE = ROOT / "src" / "chips" / "_clients.py"

HEAD = '''"""The two clients. Made by `tools/surface.py` from the operations of `chips._core`: change those, not this file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence

from chips._drive import AsyncDriver, SyncDriver
from chips.outcome import Outcome
from chips.types import {names}

__all__ = ["AsyncClient", "Client"]
'''

CLASSES = {
    "Client": ("SyncDriver", "Asks people, and waits for them in the calling thread. Safe to share between threads."),
    "AsyncClient": ("AsyncDriver", "Asks people, and waits for them on the running event loop."),
}


def operations() -> list[ast.FunctionDef]:
    """The public operations, in the order of the source."""
    tree = ast.parse(CORE.read_text(encoding="utf-8"))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Operations")
    return [node for node in found.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def method(operation: ast.FunctionDef, awaits: bool) -> str:
    """One method of a client that carries the operation out."""
    returns = operation.returns
    assert isinstance(returns, ast.Subscript) and isinstance(returns.value, ast.Name), operation.name
    inner, feeds = ast.unparse(returns.slice), returns.value.id == "Feed"
    if feeds:
        result = f"AsyncGenerator[{inner}, None]" if awaits else f"Generator[{inner}, None, None]"
    else:
        result = inner
    arguments = operation.args
    passed = [arg.arg for arg in arguments.args[1:]] + [f"{arg.arg}={arg.arg}" for arg in arguments.kwonlyargs]
    parameters = [_parameter(arg, default) for arg, default in _positional(arguments)]
    if arguments.kwonlyargs:
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        parameters += ["*", *(_parameter(arg, default) for arg, default in pairs)]
    call = f"self._{'iterate' if feeds else 'drive'}(self._ops.{operation.name}({', '.join(passed)}))"
    call = f"{'await ' if awaits and not feeds else ''}{call}"
    head = f"{'async ' if awaits and not feeds else ''}def {operation.name}(self"
    if parameters:
        head = f"{head.removesuffix('self')}\n" + "".join(f"    {each},\n" for each in ["self", *parameters])
    if len(call) > 100:
        listed = "".join(f"            {each},\n" for each in passed)
        call = call.removesuffix(", ".join(passed) + "))") + f"\n{listed}        )\n    )"
        call = call.replace("(self._ops", "(\n        self._ops", 1)
    doc = ast.get_docstring(operation) or ""
    quoted = f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""'
    return f"{head}) -> {result}:\n" + _trim(textwrap.indent(quoted, "    ")) + f"\n    return {call}"


def _positional(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    listed = arguments.args[1:]
    defaults: list[ast.expr | None] = [None] * (len(listed) - len(arguments.defaults))
    return list(zip(listed, [*defaults, *arguments.defaults], strict=True))


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    assert arg.annotation is not None, arg.arg
    text = f"{arg.arg}: {ast.unparse(arg.annotation)}"
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def names(source: str) -> str:
    """The imports from `chips.types` that the surface needs."""
    types = ROOT / "src" / "chips" / "types.py"
    known = {node.name for node in ast.parse(types.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)}
    known |= {"Answers", "AskRef", "EventType", "OnNoAnswer"}
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    return "(\n" + "".join(f"    {name},\n" for name in sorted(known & used, key=str.lower)) + ")"


def render() -> str:
    """The whole file."""
    classes = []
    for name, (base, doc) in CLASSES.items():
        methods = [textwrap.indent(method(each, base == "AsyncDriver"), "    ") for each in operations()]
        classes.append(f'class {name}({base}):\n    """{doc}"""\n\n' + "\n\n".join(map(_trim, methods)))
    body = "\n\n\n".join(classes) + "\n"
    return HEAD.format(names=names(body)) + "\n\n" + body


if __name__ == "__main__":
    wanted = render()
    if "--check" in sys.argv[1:]:
        if SURFACE.read_text(encoding="utf-8") != wanted:
            sys.exit(f"{SURFACE.name} is not what its operations say: run `python tools/surface.py`")
    else:
        SURFACE.write_text(wanted, encoding="utf-8")
