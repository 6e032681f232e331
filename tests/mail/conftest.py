"""The real `chips serve`, a real SMTP server, and people in browsers without JavaScript."""

from __future__ import annotations

import asyncio
import base64
import http.client
import itertools
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

LIMIT = 60.0
"""How long anything may take before a test gives up on it, in seconds."""

BINARY = Path(os.environ["CHIPS_BIN"])
TLS = Path(__file__).parents[2] / "crates/chips/tests/data/tls"
USERNAME, PASSWORD = "chips", "correct horse"


def until(what: str, condition: Callable[[], Any]) -> Any:
    """Waits until the condition gives something that is true, and returns that."""
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


@dataclass
class Mail:
    """One mail as it came in."""

    sender: str
    to: list[str]
    raw: bytes
    encrypted: bool

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.raw, policy=policy.default)

    def part(self, kind: str) -> str:
        """The text of its only part of a kind, `plain` or `html`."""
        (part,) = [part for part in self.message.walk() if part.get_content_type() == f"text/{kind}"]
        return part.get_content().replace("\r\n", "\n")

    @property
    def text(self) -> str:
        return self.part("plain")


@dataclass
class Post:
    """An SMTP server that keeps what it is given. What it replies to a recipient can be said beforehand."""

    way: str = "none"
    replies: list[str] = field(default_factory=list)
    """For the next recipients, one after the other; then all are good."""
    always: str | None = None
    """For every recipient."""
    mails: list[Mail] = field(default_factory=list)
    asked: int = 0
    """Recipients that were named."""
    held: threading.Event = field(default_factory=threading.Event)
    """Not set: whoever names a recipient waits for a reply."""
    port: int = 0

    def __post_init__(self) -> None:
        self.held.set()
        self.loop = asyncio.new_event_loop()
        started = threading.Event()

        async def start() -> None:
            implicit = self.context() if self.way == "implicit" else None
            self.server = await self.loop.create_server(self.protocol, "127.0.0.1", self.port, ssl=implicit)
            self.port = self.server.sockets[0].getsockname()[1]
            started.set()

        def run() -> None:
            asyncio.set_event_loop(self.loop)
            self.loop.run_until_complete(start())
            self.loop.run_forever()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        assert started.wait(LIMIT)

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "server.pem", TLS / "server.key.pem")
        return context

    def protocol(self) -> SMTP:
        starttls = self.way == "starttls"
        secured = self.way in ("starttls", "implicit")
        return SMTP(
            self,
            hostname="mail.test",
            tls_context=self.context() if starttls else None,
            require_starttls=starttls,
            authenticator=self.authenticate if secured else None,
            auth_required=secured,
            # Behind implicit TLS aiosmtpd does not know of it.
            auth_require_tls=starttls,
            loop=self.loop,
        )

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        good = (data.login, data.password) == (USERNAME.encode(), PASSWORD.encode())
        return AuthResult(success=good, handled=good)

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        self.asked += 1
        while not self.held.is_set():
            await asyncio.sleep(0.02)
        reply = self.always or (self.replies.pop(0) if self.replies else "250 OK")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        encrypted = session.ssl is not None or self.way == "implicit"
        raw = envelope.original_content or b""
        self.mails.append(Mail(str(envelope.mail_from), list(envelope.rcpt_tos), raw, encrypted))
        return "250 2.0.0 Kept"

    def wait_for(self, count: int) -> list[Mail]:
        return until(f"{count} mails, there are {len(self.mails)}", lambda: self.mails[:count] if len(self.mails) >= count else None)

    def stop(self) -> None:
        def close() -> None:
            self.server.close()
            self.loop.stop()

        self.held.set()
        self.loop.call_soon_threadsafe(close)
        self.thread.join(LIMIT)


class Forms(HTMLParser):
    """The fields of each form that are sent without anything being typed, by where it goes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, str]] = {}
        self.current: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.current = self.forms.setdefault(given.get("action", ""), {})
        elif tag == "input" and given.get("type") == "hidden":
            self.current[given["name"]] = given["value"]


class Browser:
    """A browser in which somebody signs in."""

    def __init__(self, server: Server, link: str) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}
        path = urllib.parse.urlsplit(link).path
        status, page = self.request("GET", path)
        fields = next(iter(Forms(page).forms.values()))
        status, page = self.request("POST", path, fields)
        assert status == 303, page

    def request(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.server.address, timeout=LIMIT)
        headers = {"accept-language": "en", "cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if method == "POST":
            headers |= {"origin": self.server.url, "sec-fetch-site": "same-origin"}
            headers["content-type"] = "application/x-www-form-urlencoded"
        body = urllib.parse.urlencode(fields) if fields is not None else None
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        for line in reply.headers.get_all("set-cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name] = value
        text = reply.read().decode()
        connection.close()
        return reply.status, text

    def get(self, path: str) -> str:
        status, page = self.request("GET", path)
        assert status == 200, page
        return page

    def send(self, action: str, **typed: str) -> tuple[int, str]:
        """Sends a form of the settings."""
        fields = Forms(self.get("/settings")).forms[action]
        return self.request("POST", action, fields | typed)

    def prove(self, post: Post, address: str) -> None:
        """Adds an address, and types the code that comes to it."""
        before = len(post.mails)
        status, page = self.send("/settings/told/email", address=address)
        assert status == 303, page
        status, page = self.send("/settings/told/email/confirm", code=code_in(post.wait_for(before + 1)[before]))
        assert status == 303, page


def code_in(mail: Mail) -> str:
    (code,) = re.findall(r"^\d{4} \d{4}$", mail.text, re.MULTILINE)
    return code


class Server:
    """A server that sends mail, with Kim and a harness."""

    def __init__(self, home: Path, post: Post, **settings: str) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHIPS_", "XDG_", "RUST_LOG"))}
        self.env = {**kept, "HOME": str(home), "CHIPS_DATA": str(home / "data")}
        made = self.command("init", "--json")
        self.workspace: str = made["workspace_id"]
        self.space: str = made["space_id"]
        self.owner: dict[str, str] = made["person"]
        self.harness: dict[str, str] = made["harness"]
        self.address = "127.0.0.1:0"
        secret = home / "password"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o600)
        given = {"host": "localhost", "port": str(post.port), "tls": post.way, "from": "Chips <chips@chips.test>"}
        if post.way != "none":
            given |= {"username": USERNAME, "password_file": "password", "ca_file": str(TLS / "authority.pem")}
        given |= settings
        lines = [f"{name} = {value if name == 'port' else json.dumps(value)}" for name, value in given.items()]
        self.config = home / "chips.toml"
        self.config.write_text("[smtp]\n" + "\n".join(lines) + "\n")
        self.post = post
        self.process: subprocess.Popen[str] | None = None
        self.count = itertools.count(1)
        self.start()
        self.run = self.opened()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def command(self, *arguments: str) -> Any:
        done = subprocess.run([BINARY, *arguments], env=self.env, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout

    def start(self) -> None:
        """Starts it, on the port that it had before."""
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", self.address, "--config", self.config],
            # Whatever is logged at the most, no address, no code and no secret is in it.
            env=self.env | {"CHIPS_LOG": "trace"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self.home / "log").open("a"),
            text=True,
        )
        assert self.process.stdout is not None
        line = ""
        while "listening on http://" not in line:
            line = self.process.stdout.readline()
            assert line, (self.home / "log").read_text()
        self.address = line.split("listening on http://")[1].split()[0]

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(by)
            self.process.wait(LIMIT)
            self.process = None
            self.look_for_secrets()

    def look_for_secrets(self) -> None:
        log = (self.home / "log").read_text()
        assert "chips_server::access" in log
        login = base64.b64encode(f"\0{USERNAME}\0{PASSWORD}".encode()).decode()
        secrets = {PASSWORD, base64.b64encode(PASSWORD.encode()).decode(), login, "Which day should I confirm?", "19 September"}
        for mail in self.post.mails:
            secrets.update(mail.to)
            secrets.update(re.findall(r"^\d{4} \d{4}$", mail.text, re.MULTILINE))
        for secret in secrets:
            assert secret not in log, f"{secret} is in the log"

    def call(self, method: str, path: str, token: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection(self.address, timeout=LIMIT)
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        assert reply.status < 300, text
        return json.loads(text)

    def opened(self, **more: Any) -> str:
        """A new run."""
        return self.call("POST", "/v1/runs", self.harness["token"], {"title": "Weekly restock", **more})["run_id"]

    def minted(self, prefix: str) -> str:
        return f"{prefix}_01K4ZQPX{next(self.count):018d}"

    def ask(self, prompt: str = "Which day should I confirm?", run: str | None = None, **more: Any) -> Any:
        """Asks one question, and gives the event."""
        question = {
            "question_id": "when",
            "prompt": prompt,
            "options": [
                {
                    "value": "19",
                    "label": more.pop("label", "19 September"),
                    "description": more.pop("description", "The date on the order."),
                },
                {"value": "26", "label": "26 September"},
            ],
        }
        if "default" in more:
            question["default_value"] = more.pop("default")
        ask_id = self.minted("qst")
        event = {
            "v": 1,
            "type": "question.ask",
            "id": self.minted("evt"),
            "workspace_id": self.workspace,
            "actor": {"kind": "harness", "id": self.harness["id"]},
            "run_id": run or self.run,
            "ask_id": ask_id,
            "idempotency_key": ask_id,
            "questions": [question],
            **more,
        }
        return self.call("POST", "/v1/events", self.harness["token"], event)

    def answer(self, asked: Any, person: dict[str, str]) -> None:
        event = {
            "v": 1,
            "type": "question.answered",
            "id": self.minted("evt"),
            "workspace_id": self.workspace,
            "actor": {"kind": "person", "id": person["id"]},
            "run_id": asked["run_id"],
            "ask_id": asked["ask_id"],
            "idempotency_key": self.minted("answer"),
            "answers": [{"question_id": "when", "values": ["26"]}],
        }
        self.call("POST", "/v1/events", person["token"], event)

    def read(self, asked: Any) -> Any:
        return self.call("GET", f"/v1/asks/{asked['ask_id']}", self.owner["token"])

    def signed_in(self, person: dict[str, str]) -> Browser:
        return Browser(self, self.command("person", "link", person["id"], "--json")["sign_in_url"])

    def told(self, outcome: str) -> int:
        """How many mails had this outcome since the start, by the figures of the server."""
        connection = http.client.HTTPConnection(self.address, timeout=LIMIT)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        found = [line.split()[-1] for line in text.splitlines() if 'channel="email"' in line and f'outcome="{outcome}"' in line]
        return sum(int(float(value)) for value in found)


@pytest.fixture
def post() -> Iterator[Post]:
    post = Post()
    yield post
    post.stop()


@pytest.fixture
def server(tmp_path: Path, post: Post) -> Iterator[Server]:
    server = Server(tmp_path, post)
    yield server
    server.end()


@pytest.fixture
def kim(server: Server, post: Post) -> Browser:
    """The owner, who is told at kim@example.com. The mail with the code is the first one."""
    browser = server.signed_in(server.owner)
    browser.prove(post, "kim@example.com")
    return browser
