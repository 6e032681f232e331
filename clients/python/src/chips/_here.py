"""Where this program runs, as labels of a run."""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["here"]

LONGEST = 255


def here(folder: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Labels that tell people which of your machines and folders asks: `host`, `folder`, and `branch` in a Git work tree.

    `folder` is the working folder where it is left out. Nothing is run and nothing is sent; pass it as `labels`.
    """
    where = Path(folder) if folder is not None else Path.cwd()
    labels = {"host": socket.gethostname(), "folder": str(where.absolute())}
    branch = _branch(where.absolute())
    if branch:
        labels["branch"] = branch
    # The end of a long path tells more than its beginning.
    return {name: _clean(text)[-LONGEST:] for name, text in labels.items() if text}


def _branch(folder: Path) -> str | None:
    for each in (folder, *folder.parents):
        git = each / ".git"
        try:
            if git.is_file():  # a linked work tree: the file says where its own folder is
                git = each / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            head = (git / "HEAD").read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            if git.exists():
                return None
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None
    return None


def _clean(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
