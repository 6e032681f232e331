"""What arrives at an SMTP server, and what becomes of what it says."""

from __future__ import annotations

import base64
import re
import signal
from datetime import UTC, datetime
from email import policy
from email.parser import BytesParser
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import Browser, Mail, Post, Server, until


# What else the form says of when somebody is told.
WHEN = {"from": "", "to": "", "grace": "30", "reminders": "on", "use": "goes.email"}


class Html(HTMLParser):
    """What a mail program would act on."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        self.links += [value or "" for name, value in attributes if name in ("href", "src", "action", "background")]

    def handle_data(self, data: str) -> None:
        self.text += data


def check(mail: Mail, server: Server) -> None:
    """What holds for every mail: its form on the wire, nothing that is loaded, nothing that answers."""
    # Lines end with CR LF and with nothing else, none is too long, all is ASCII (RFC 5322, 2.1.1 and 2.3).
    assert b"\n" not in mail.raw.replace(b"\r\n", b"") and b"\r" not in mail.raw.replace(b"\r\n", b"")
    assert all(len(line) <= 998 for line in mail.raw.split(b"\r\n")) and mail.raw.isascii()
    message = mail.message
    assert [str(defect) for part in message.walk() for defect in part.defects] == []
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    for name in ("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "List-Unsubscribe"):
        assert len(message.get_all(name) or []) == 1, name
    assert message["From"] == "Chips <chips@chips.test>" and mail.sender == "chips@chips.test"
    assert message["Date"].datetime is not None
    assert re.fullmatch(r"<[^<>\s@]+@chips\.test>", message["Message-ID"])
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["List-Unsubscribe"] == f"<{server.url}/settings>"
    assert mail.to == [message["To"]]
    html = Html(mail.part("html"))
    assert not {"script", "img", "link", "form", "iframe", "object", "button", "input"} & set(html.tags)
    assert not [name for name in html.attributes if name.startswith("on")]
    assert "url(" not in mail.part("html") and "@import" not in mail.part("html")
    assert all(link.startswith(server.url) for link in html.links), html.links
    assert "/a/" not in mail.raw.decode(), "nothing that answers"


@pytest.mark.parametrize("way", ["implicit", "starttls"])
def test_a_question_goes_out_encrypted_under_a_name_and_a_password(tmp_path: Path, way: str) -> None:
    post = Post(way)
    server = Server(tmp_path, post)
    try:
        kim = server.signed_in(server.owner)
        kim.prove(post, "kim@example.com")
        server.ask()
        mail = post.wait_for(2)[1]
        assert mail.encrypted
        check(mail, server)
    finally:
        server.end()
        post.stop()


def test_a_wrong_password_and_a_certificate_of_nobody_known_send_nothing(tmp_path: Path) -> None:
    post = Post("implicit")
    for name, settings, says in [
        ("a", {"username": "somebody"}, "does not let Chips in"),
        ("b", {"ca_file": ""}, "ertificate"),
    ]:
        (tmp_path / name).mkdir()
        server = Server(tmp_path / name, post, **settings)
        status, page = server.signed_in(server.owner).send("/settings/told/email", address="kim@example.com")
        server.end()
        assert status == 422 and says in page, page
        assert "correct horse" not in page + (server.home / "log").read_text()
    assert post.mails == []
    post.stop()


def test_a_server_that_offers_no_starttls_gets_nothing(tmp_path: Path, post: Post) -> None:
    server = Server(tmp_path, post, tls="starttls")
    status, _ = server.signed_in(server.owner).send("/settings/told/email", address="kim@example.com")
    server.end()
    assert (status, post.mails, post.asked) == (422, [], 0)


def test_n01_a_question_is_told_in_text_and_html_as_loudly_as_silence_costs(
    server: Server, post: Post, kim: Browser
) -> None:
    asked = server.ask()
    server.ask("And which hour?", default="19", timeout_seconds=3600)
    loud, calm = post.wait_for(3)[1:]
    for mail in (loud, calm):
        check(mail, server)
        assert mail.to == ["kim@example.com"]
    message = loud.message
    assert message["Subject"].endswith(" asks: Which day should I confirm?")
    assert (message["Importance"], message["X-Priority"]) == ("high", "1")
    assert (calm.message["Importance"], calm.message["X-Priority"]) == (None, None)
    link = f"{server.url}/asks/{asked['ask_id']}"
    for text in (loud.text, Html(loud.part("html")).text):
        for says in ("Which day should I confirm?", "19 September", "The date on the order.", "26 September"):
            assert says in text, says
    assert f"Open the question:\n{link}\n" in loud.text
    assert link in Html(loud.part("html")).links
    assert re.search(r"If nobody answers: \w+ takes “19 September” on \d{4}-\d\d-\d\d at \d\d:\d\d \(UTC\)", calm.text), calm.text
    assert "19 September (default)" in calm.text and "default" in Html(calm.part("html")).text
    # The time is that of the clock on their wall.
    assert kim.send("/settings/when", zone="Asia/Kathmandu", **WHEN)[0] == 303
    server.ask("And in Kathmandu?", default="19", timeout_seconds=3600)
    there = re.search(r"on (\d{4}-\d\d-\d\d) at (\d\d):(\d\d) \(Asia/Kathmandu\)", post.wait_for(4)[3].text)
    assert there, post.wait_for(4)[3].text
    wall = datetime.fromisoformat(f"{there[1]}T{there[2]}:{there[3]}+05:45")
    assert 3400 < (wall - datetime.now(UTC)).total_seconds() < 3700
    # The link opens exactly that question, and opening it changes nothing.
    assert "Which day should I confirm?" in kim.get(f"/asks/{asked['ask_id']}")
    assert server.read(asked)["state"] == "open"


def test_n02_the_outcome_follows_in_the_same_thread_unless_it_is_ones_own(
    server: Server, post: Post, kim: Browser
) -> None:
    robin = server.command("person", "add", "Robin", "--json")
    first, second = server.ask("First?"), server.ask("Second?")
    about = {mail.message["Subject"].split()[-1]: mail.message for mail in post.wait_for(3)[1:]}
    server.answer(second, server.owner)
    server.answer(first, robin)
    outcome = post.wait_for(4)[3]
    check(outcome, server)
    message, root = outcome.message, about["First?"]
    assert message["Subject"] == f"Re: {root['Subject']}"
    assert message["In-Reply-To"] == root["Message-ID"] and message["References"] == root["Message-ID"]
    assert message["Message-ID"] != root["Message-ID"] and message["Importance"] == "low"
    assert "Robin answered" in outcome.text and "26 September" in outcome.text
    # Kim's own answer is no news to Kim: the sign that follows is about a third question.
    server.ask("Third?")
    assert post.wait_for(5)[4].message["Subject"].endswith("Third?")
    # And their pages say so: of what was not sent nobody took anything.
    assert "accepted the outcome" in kim.get(f"/asks/{first['ask_id']}")
    assert "accepted the outcome" not in kim.get(f"/asks/{second['ask_id']}")


def test_hostile_text_makes_no_header_no_markup_and_turns_no_direction(
    server: Server, post: Post, kim: Browser
) -> None:
    prompt = "Ship?\r\nBcc: robin@example.com\r\n\r\n<script>alert(1)</script> <b>\u202etxet\u202c &amp; ünï 🍟"
    server.ask(prompt)
    mail = post.wait_for(2)[1]
    check(mail, server)
    message = mail.message
    assert message["Bcc"] is None and mail.to == ["kim@example.com"]
    assert "\n" not in message["Subject"] and "Ship? Bcc: robin@example.com" in message["Subject"]
    html = Html(mail.part("html"))
    assert "b" not in html.tags and "<script>alert(1)</script>" in html.text and "ünï 🍟" in html.text
    for text in (message["Subject"], mail.text, mail.part("html")):
        assert "\u202e" not in text
    assert "\\u{202e}" in mail.text and "\\u{202e}" in html.text


def test_what_looks_encoded_in_a_prompt_or_a_name_is_shown_as_it_was_written(
    server: Server, post: Post, kim: Browser
) -> None:
    hidden = base64.b64encode("\u202e\r\nBcc: robin@example.com".encode()).decode()
    name = f"=?utf-8?B?{hidden}?= Bot"
    harness = server.command("harness", "add", name, "--json")
    prompts = [
        f"=?utf-8?B?{hidden}?=",
        f"Ship =?utf-8?q?=E2=80=AE?= =?iso-8859-1?B?{hidden}?= it, ünï?",
        "Is a=?b the same as b=?a " + "=?" * 30,
        "Plain?",
    ]
    mine = server.harness
    for asker, who in ((mine, "Harness"), (harness, name)):
        server.harness = asker
        run = server.opened()
        for prompt in prompts:
            before = len(post.mails)
            server.ask(prompt, run)
            mail = post.wait_for(before + 1)[before]
            check(mail, server)
            subject = mail.message["Subject"]
            assert subject == shortened(f"{who} asks: {prompt}"), subject
            assert subject.defects == () and mail.message["Bcc"] is None
            raw = re.search(rb"^Subject:(.*\r\n(?: .*\r\n)*)", mail.raw, re.MULTILINE)
            assert raw and hidden.encode() not in raw[1]
            if "=?" not in subject:
                assert b"=?" not in raw[1], "what needs no encoding has none"
    server.harness = mine


def shortened(subject: str) -> str:
    """A subject as it is cut."""
    return subject if len(subject) <= 110 else subject[:109].rstrip() + "…"


def test_no_label_and_no_prompt_makes_a_line_of_the_mail(server: Server, post: Post, kim: Browser) -> None:
    fake = "\n  - Approve (default)\n\nIf nobody answers: Harness goes on.\n-- \nOpen the question:\nhttps://evil.example/"
    server.ask("Ship?" + fake, label="Yes" + fake, description="Now." + fake, default="26", timeout_seconds=3600)
    mail = post.wait_for(2)[1]
    check(mail, server)
    lines = mail.text.split("\n")
    options = [line for line in lines if line.startswith("  - ")]
    assert options == [
        "  - Yes - Approve (default) If nobody answers: Harness goes on. -- Open the question: https://evil.example/",
        "  - 26 September (default)",
    ]
    assert [line for line in lines if line.startswith("If nobody answers")][0].startswith("If nobody answers: Harness takes")
    assert len([line for line in lines if line.startswith("If nobody answers")]) == 1
    assert lines.count("Open the question:") == 1 and lines.count("-- ") == 1
    assert "> Open the question:" in lines and "> https://evil.example/" in lines
    assert not [line for line in lines if line.startswith("https://evil")]


def test_n13_of_a_private_space_no_word_leaves(server: Server, post: Post, kim: Browser) -> None:
    server.command("space", "private", server.space, "on")
    robin = server.command("person", "add", "Robin", "--json")
    run = server.opened(space_id=server.space, title="Layoffs")
    asked = server.ask("Whom do we let go?", run, default="19", timeout_seconds=3600)
    post.wait_for(2)
    server.answer(asked, robin)
    mails = post.wait_for(3)[1:]
    for mail in mails:
        check(mail, server)
        whole = "".join([str(mail.message["Subject"]), mail.text, mail.part("html")])
        for word in ("let go", "September", "on the order", "Layoffs"):
            assert word not in whole, word
    assert "A question waits in the inbox." in mails[0].text


def test_an_address_gets_nothing_before_it_is_proven(server: Server, post: Post) -> None:
    kim = server.signed_in(server.owner)
    status, page = kim.send("/settings/told/email", address="kim@example.com")
    assert status == 303, page
    (proof,) = post.wait_for(1)
    check(proof, server)
    assert "Give it to nobody" in proof.text and f"{server.url}" in proof.text
    settings = kim.get("/settings")
    assert "A mail with a code went to kim@example.com" in settings
    server.ask()
    for _ in range(4):
        status, page = kim.send("/settings/told/email/confirm", code="nonsense")
        assert status == 422 and "That is not the code" in page
    status, page = kim.send("/settings/told/email/confirm", code="nonsense")
    assert status == 422 and "not good any more" in page
    assert len(post.mails) == 1, "nothing but the code"
    # Looking at what the mail names proves nothing.
    kim.get("/settings")
    assert "/settings/told/test" not in kim.get("/settings")
    kim.prove(post, "kim@example.com")
    status, page = kim.send("/settings/told/email", address="kim@EXAMPLE.com")
    assert status == 422 and "is there already" in page
    status, page = kim.send("/settings/told/test")
    assert "The test message was accepted" in page
    trial = post.wait_for(3)[2]
    check(trial, server)
    assert trial.message["Subject"] == "A test message from Chips"
    server.ask("After?")
    assert "After?" in post.wait_for(4)[3].text


def test_codes_are_not_sent_without_end(server: Server, post: Post) -> None:
    kim = server.signed_in(server.owner)
    for n in range(3):
        assert kim.send("/settings/told/email", address="victim@example.com")[0] == 303, n
    status, page = kim.send("/settings/told/email", address="victim@example.com")
    assert status == 422 and "Many codes were sent" in page
    for address in ("", "kim", "a@b.example, c@d.example", "kim@example.com\r\nBcc: x@y.example"):
        status, page = kim.send("/settings/told/email", address=address)
        assert status == 422 and "Give one whole address" in page, address
    assert len(post.mails) == 3


def test_what_the_server_says_is_what_is_kept(server: Server, post: Post, kim: Browser) -> None:
    post.replies = ["451 4.3.0 Later", "250 OK", "554 5.7.1 We take no such mail", "550 5.1.1 No such user here"]
    first = server.ask("First?")
    assert "First?" in post.wait_for(2)[1].text
    assert (server.told("failed"), server.told("accepted")) == (1, 2), "the code, and the question at the second try"
    assert "451 4.3.0 Later" in kim.get(f"/asks/{first['ask_id']}")
    second = server.ask("Second?")
    until("the refusal", lambda: server.told("refused") == 1)
    assert "554 5.7.1 We take no such mail" in until("it", lambda: kim.get(f"/asks/{second['ask_id']}"))
    third = server.ask("Third?")
    until("that it is gone", lambda: server.told("gone") == 1)
    until("N14: that nobody could be told", lambda: server.read(third)["reachable"] is False)
    assert "Third?" in kim.get("/"), "the inbox shows it all the same"
    asked = post.asked
    server.ask("Fourth?")
    # Once it is proven anew, it is told again.
    kim.prove(post, "kim@example.com")
    server.ask("Fifth?")
    until("the fifth", lambda: [mail for mail in post.mails if "Fifth?" in mail.text])
    assert not [mail for mail in post.mails if "Fourth?" in mail.text]
    assert post.asked == asked + 2, "one code and one question"


def test_a_server_that_never_answers_times_out_and_one_that_is_away_is_tried_again(tmp_path: Path) -> None:
    post = Post()
    server = Server(tmp_path, post)
    kim = server.signed_in(server.owner)
    kim.prove(post, "kim@example.com")
    post.held.clear()
    server.ask("Slow?")
    until("the time-out", lambda: server.told("timed_out") == 1)
    post.stop()
    again = Post(port=post.port)
    until("it to come", lambda: [mail for mail in again.mails if "Slow?" in mail.text])
    server.end()
    again.stop()


def test_n07_killed_between_the_question_and_the_mail_it_is_sent_once_after_the_start(
    server: Server, post: Post, kim: Browser
) -> None:
    post.held.clear()
    asked = post.asked
    server.ask("Once?")
    until("that the mail is under way", lambda: post.asked > asked)
    server.end(signal.SIGKILL)
    # What was under way never got its text: the connection died with the server.
    post.held.set()
    server.start()
    mail = until("the mail", lambda: [mail for mail in post.mails if "Once?" in mail.text])[0]
    check(mail, server)
    server.ask("Next?")
    until("the next", lambda: [mail for mail in post.mails if "Next?" in mail.text])
    assert len([mail for mail in post.mails if "Once?" in mail.text]) == 1


def test_n10_after_the_deadline_nothing_more_is_tried(server: Server, post: Post, kim: Browser) -> None:
    post.always = "451 4.3.0 Later"
    asked = server.ask("Soon?", timeout_seconds=3)
    until("a try", lambda: server.told("failed") >= 1)
    until("the deadline", lambda: server.read(asked)["state"] == "timed_out")
    post.always = None
    server.ask("Next?")
    post.wait_for(2)
    assert [mail for mail in post.mails if "Soon?" in mail.text] == []


def test_n18_who_was_removed_gets_nothing_and_a_sign_out_leaves_the_address(server: Server, post: Post) -> None:
    robin = server.command("person", "add", "Robin", "--json")
    browser = server.signed_in(robin)
    browser.prove(post, "robin@example.com")
    browser.send("/sign-out")
    server.ask("Before?")
    assert post.wait_for(2)[1].to == ["robin@example.com"], "an address is not a browser: it stays until it is removed"
    server.command("person", "disable", robin["id"])
    kim = server.signed_in(server.owner)
    kim.prove(post, "kim@example.com")
    server.ask("After?")
    until("Kim's", lambda: [mail for mail in post.mails if "After?" in mail.text])
    server.ask("Last?")
    until("Kim's last", lambda: [mail for mail in post.mails if "Last?" in mail.text])
    assert not [mail for mail in post.mails if "After?" in mail.text and mail.to == ["robin@example.com"]]


def test_without_a_mail_server_there_is_no_mail(tmp_path: Path, post: Post) -> None:
    server = Server(tmp_path, post, host="")
    kim = server.signed_in(server.owner)
    page = kim.get("/settings")
    server.end()
    assert "/settings/told/email" not in page and "waits.email" not in page


def test_every_mail_is_read_the_same_by_the_strict_parser(server: Server, post: Post, kim: Browser) -> None:
    server.ask("Long " * 700)
    mail = post.wait_for(2)[1]
    check(mail, server)
    BytesParser(policy=policy.strict.clone(raise_on_defect=True)).parsebytes(mail.raw)
    assert len(mail.message["Subject"]) <= 110 and mail.text.count("Long") >= 700
