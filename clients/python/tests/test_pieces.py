"""The small parts: identifiers, pauses, the stream's parser, the reader of replies, labels, the surface."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import chips
from chips import _drive, _ids
from chips._backoff import Backoff, retry_after
from chips._decode import Mismatch, decode
from chips._sse import Message, Parser
from tests.conductor import ask_event, ask_json

ROOT = Path(__file__).resolve().parent.parent
ULID = re.compile(r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$")


class TestIdentifiers:
    def test_they_are_a_prefix_and_a_ulid(self) -> None:
        for prefix, mint in (("qst_", chips.new_ask_id), ("run_", chips.new_run_id), ("evt_", _ids.new_event_id)):
            minted = [mint() for _ in range(500)]
            assert len(set(minted)) == 500
            assert all(each.startswith(prefix) and ULID.match(each.removeprefix(prefix)) for each in minted)

    def test_the_time_comes_first(self) -> None:
        before = _ids._ulid((1 << 80) - 1)
        assert before[:10] == "0000000000" and before < _ids._ulid(1 << 80)
        assert _ids._ulid((1 << 128) - 1) == "7" + "Z" * 25

    def test_the_same_texts_give_the_same_one_and_no_others_do(self) -> None:
        lists = [("a", "b"), ("ab",), ("ab", ""), ("", "ab"), ("a", "b", ""), ("\ud800",), ()]
        derived = [_ids.derived("qst_", *texts) for texts in lists]
        assert len(set(derived)) == len(lists)
        assert derived == [_ids.derived("qst_", *texts) for texts in lists]
        assert all(ULID.match(each.removeprefix("qst_")) for each in derived)

    def test_a_run_can_share_an_asks_ulid(self) -> None:
        assert _ids.same_ulid("run_", "qst_01K4ZQPX000000000000000009") == "run_01K4ZQPX000000000000000009"


class TestPauses:
    def test_clients_that_were_cut_off_together_do_not_come_back_together(self) -> None:
        low, high = (Backoff(0.25, 15, lambda share=share: share) for share in (0.0, 1.0))  # type: ignore[misc]
        for _ in range(100):
            shortest, longest = low.next(), high.next()
            assert 0 < shortest == longest / 2 <= 7.5

    def test_a_wish_of_the_server_is_never_undercut(self) -> None:
        assert Backoff(0.25, 15, lambda: 0.0).next(30) > 30

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("120", 120),
            (" 7 ", 7),
            ("Fri, 31 Dec 1999 23:59:59 GMT", 59),
            ("Fri, 31 Dec 1999 23:58:00 GMT", 0),
            ("soon", None),
            ("-1", None),
            ("1e9", None),
            ("٣", None),
            ("", None),
            (None, None),
        ],
    )
    def test_both_forms_of_retry_after(self, header: str | None, seconds: float | None) -> None:
        now = datetime.datetime(1999, 12, 31, 23, 59, tzinfo=datetime.timezone.utc).timestamp()
        assert retry_after(header, now) == seconds


STREAM = (
    '\ufeff: welcome\r\nid: 1\r\nevent: question.ask\r\ndata: {"a":"\u2028é"}\r\n\r\n'
    "id: 2\rdata: one\rdata:two\rretry: 9\r\r"
    "id\n\nevent: empty\n\ndata\n\nid: 3\ndata:  spaced\n\ndata: not ended\n"
).encode()
MESSAGES = [
    Message("1", "question.ask", '{"a":"\u2028é"}'),
    Message("2", "message", "one\ntwo"),
    Message("", "message", ""),
    Message("3", "message", " spaced"),
]


class TestStreamParser:
    def test_the_standards_corners(self) -> None:
        assert Parser().feed(STREAM) == MESSAGES

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
    def test_bytes_come_in_any_pieces(self, size: int) -> None:
        parser = Parser()
        pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
        assert list(itertools.chain.from_iterable(map(parser.feed, pieces))) == MESSAGES


class TestReplies:
    def test_fields_of_the_future_are_kept_in_raw_and_break_nothing(self) -> None:
        body = ask_json() | {"novel": {"a": 1}}
        body["asker"] = {**body["asker"], "avatar": "x"}
        ask = decode(chips.Ask, body)
        assert ask.raw["novel"] == {"a": 1} and ask.asker.name == "builder"

    def test_words_of_the_future_come_through(self) -> None:
        assert str(decode(chips.Ask, ask_json() | {"tier": "deafening"}).tier) == "deafening"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"ask_id": None}, "/ask_id: expected a text, got null"),
            ({"reachable": 1}, "/reachable: expected a boolean, got a number"),
            ({"late_answers": {}}, "/late_answers: expected an array, got an object"),
            ({"option_labels": {"q": {"v": 1}}}, "/option_labels/q/v: expected a text, got a number"),
            ({"deadline": "tomorrow"}, r"/deadline: expected a time \(RFC 3339\), got a text"),
            ({"deadline": "2026-13-02T14:22:05.004Z"}, r"/deadline: expected a time \(RFC 3339\), got a text"),
            ({"deadline": "2026-09-02T14:22:05.004"}, r"/deadline: expected a time \(RFC 3339\), got a text"),
            ({"ask": {"type": "question.answered"}}, "/ask/type: expected the type of AskEvent, got a text"),
            ({"ask": ask_event(seq=True)}, "/ask/seq: expected a whole number, got a boolean"),
            ({"ask": ask_event(questions=[{}])}, "/ask/questions/0/question_id: expected a text, got nothing"),
        ],
    )
    def test_another_shape_is_told_with_its_place(self, change: dict[str, object], message: str) -> None:
        with pytest.raises(Mismatch, match=message):
            decode(chips.Ask, ask_json() | change)

    @pytest.mark.parametrize("value", [None, [], "x", 1, {}, {"type": 1}])
    def test_what_is_no_event_is_never_taken_for_one(self, value: object) -> None:
        with pytest.raises(Mismatch):
            decode(chips.Event, value)

    def test_times_are_aware(self) -> None:
        event = decode(chips.AskEvent, ask_event())
        assert event.ts == datetime.datetime(2026, 9, 2, 14, 22, 5, 4000, datetime.timezone.utc)


class TestQuestions:
    def test_both_spellings_of_options(self) -> None:
        by_value = chips.question("Ship?", {"yes": "Ship", "no": "Hold"})
        listed = chips.question("Ship?", [chips.Option("yes", "Ship"), chips.Option("no", "Hold")])
        assert by_value == listed and by_value.question_id == "question"
        assert chips.question("Which?", ["a", "b"]).options == (chips.Option("a", "a"), chips.Option("b", "b"))

    def test_what_is_not_said_is_not_sent(self) -> None:
        assert chips.question("Ship?", ["a", "b"]).to_json() == {
            "question_id": "question",
            "prompt": "Ship?",
            "options": [{"value": "a", "label": "a"}, {"value": "b", "label": "b"}],
        }

    def test_nothing_can_be_changed_behind_an_asks_back(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            chips.question("Ship?", ["a", "b"]).prompt = "Drop?"  # type: ignore[misc]


class TestLabels:
    def git(self, folder: Path, *arguments: str) -> None:
        named = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)

    def test_the_branch_is_told_in_a_work_tree_and_in_a_linked_one(self, tmp_path: Path) -> None:
        tree, linked = tmp_path / "tree", tmp_path / "linked"
        (tree / "deep").mkdir(parents=True)
        self.git(tree, "init")
        assert chips.here(tree / "deep")["branch"] == "main"
        self.git(tree, "commit", "--allow-empty", "-m", "x")
        self.git(tree, "worktree", "add", "-b", "feature/one", str(linked))
        assert chips.here(linked) == {"host": os.uname().nodename, "folder": str(linked), "branch": "feature/one"}
        self.git(linked, "checkout", "--detach")
        assert "branch" not in chips.here(linked)

    def test_elsewhere_there_is_none(self, tmp_path: Path) -> None:
        assert set(chips.here(tmp_path)) == {"host", "folder"}

    def test_labels_fit_whatever_the_folder_is_called(self, tmp_path: Path) -> None:
        odd = tmp_path / ("x" * 200) / ("y\x1b[31m" + "z" * 200)
        odd.mkdir(parents=True)
        folder = chips.here(odd)["folder"]
        assert len(folder) == 255 and folder.isprintable() and folder.endswith("z" * 200)


class TestSurface:
    def test_it_is_what_the_operations_say(self) -> None:
        made = subprocess.run([sys.executable, str(ROOT / "tools" / "surface.py"), "--check"], capture_output=True)
        assert made.returncode == 0, made.stderr.decode()

    def test_both_clients_have_the_same(self) -> None:
        def surface(kind: type) -> dict[str, list[inspect.Parameter]]:
            return {
                name: list(inspect.signature(member).parameters.values())
                for name, member in vars(kind).items()
                if not name.startswith("_")
            }

        assert surface(chips.Client) == surface(chips.AsyncClient)
        assert {"open_run", "end_run", "ask", "wait", "ask_and_wait", "answer", "settle", "withdraw", "acknowledge"} <= set(
            surface(chips.Client)
        )

    def test_everything_exported_is_there(self) -> None:
        for name in chips.__all__:
            assert getattr(chips, name) is not None


class TestConfiguration:
    @pytest.fixture(autouse=True)
    def _no_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("CHIPS_URL", "CHIPS_TOKEN", "CHIPS_RUN"):
            monkeypatch.delenv(name, raising=False)

    @pytest.mark.parametrize(
        ("url", "token", "message"),
        [
            (None, "t", "CHIPS_URL"),
            ("http://127.0.0.1:7070", None, "CHIPS_TOKEN"),
            ("127.0.0.1:7070", "t", "http:// or https://"),
            ("ftp://chips", "t", "http:// or https://"),
            ("http://", "t", "name a host"),
            ("https://user:secret@chips.example", "t", "holds a user"),
            ("https://chips.example/?token=x", "t", "a query"),
            ("http://127.0.0.1:7070", "two words", "characters that no token has"),
            ("http://127.0.0.1:7070", "t\r\nX-Evil: 1", "characters that no token has"),
        ],
    )
    def test_what_is_wrong_is_told_before_anything_is_sent(
        self, url: str | None, token: str | None, message: str
    ) -> None:
        with pytest.raises(chips.NotConfigured, match=message) as caught:
            chips.Client(url, token)
        assert "secret" not in str(caught.value)

    def test_the_environment_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CHIPS_URL", "https://chips.example/base/")
        monkeypatch.setenv("CHIPS_TOKEN", "chips_hk_secret\n")
        with chips.Client() as client:
            assert repr(client) == "Client('https://chips.example/base')"
            assert client._token == "chips_hk_secret"

    def test_chips_on_this_machine_is_not_asked_through_a_proxy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for url, trusted in (
            ("http://127.0.0.1:7070", False),
            ("http://[::1]:7070", False),
            ("http://localhost:7070", False),
            ("https://chips.example", True),
        ):
            with chips.Client(url, "t") as client:
                assert client._http.trust_env is trusted

    def test_httpx_and_nothing_else_is_needed(self) -> None:
        program = (
            "import sys, chips, chips.langgraph, chips.pydantic_ai, chips.openai_agents\n"
            "print([name for name in ('langgraph', 'langchain', 'pydantic_ai', 'pydantic', 'agents') if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout.replace("'", '"')) == []

    def test_the_package_says_so_and_carries_its_types(self, tmp_path: Path) -> None:
        needed = importlib.metadata.requires("chips-client") or []
        assert [each for each in needed if "extra ==" not in each] == ["httpx<1,>=0.27"]
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = tmp_path.glob("chips_client-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
        assert sources | {"chips/py.typed"} <= set(names)
        assert not [name for name in names if name.startswith(("tests", "tools", "examples"))]

    def test_the_version_is_one(self) -> None:
        assert importlib.metadata.version("chips-client") == chips.__version__
        assert _drive.AGENT.endswith(f"/{chips.__version__}")
