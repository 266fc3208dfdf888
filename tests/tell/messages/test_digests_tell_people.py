"""Digests: one message for all that is new, to real HTTPS and mail servers, once each, and never a flood."""

from __future__ import annotations

import contextlib
import email
import email.policy
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from hypothesis import given
from hypothesis import strategies as st

from assay.model.entries.tickets import DigestSentEntry, DigestStartedEntry
from assay.model.specs.technician_work import DigestSettings
from assay.model.ticket import Ticket, TicketEvent, TicketPlace, TicketRecord
from assay.tell.messages.digest import (
    DETAILED,
    MAX_LINES,
    MAX_TITLE,
    Digest,
    DigestItem,
    find_news,
    format_digest_lines,
    format_headline,
)
from tests.support.places import SMALLEST
from tests.support.reserved_ports import reserve_ports
from tests.support.ticket_room import Room, ticket
from tests.support.ticket_sinks import Request, Service, Trouble

PASSWORD = "canary-2b7d"
SLACK = "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIcanary9"


class Chat(Service):
    """An incoming webhook of Slack or Teams, or PagerDuty's Events API: it keeps each message."""

    def answer(self, request: Request) -> tuple[int, Any]:
        return (200, b"ok") if request.path.startswith("/services") else (202, None)

    @property
    def texts(self) -> list[str]:
        """The text of each message of Slack, its headline first."""
        shown = (request.body["attachments"][0] for request in self.requests)
        return ["\n".join(filter(None, (one.get("title"), one["text"]))) for one in shown]


class PostOffice:
    """A mail server that wants STARTTLS and a login, and keeps each message."""

    def __init__(self, authority: trustme.CA) -> None:
        self.messages: list[EmailMessage] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        self._controller = Controller(
            self,
            hostname="localhost",
            port=reserve_ports(1)[0],
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=self._let_in,
        )

    @property
    def port(self) -> int:
        return int(self._controller.port)

    def url(self, password: str = PASSWORD) -> str:
        return f"mailtos://assay:{password}@localhost:{self.port}?mode=starttls&from=assay@acme.example&to=ops@acme.example"

    def _let_in(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: Any) -> AuthResult:
        right = isinstance(login, LoginPassword) and login == LoginPassword(b"assay", PASSWORD.encode())
        return AuthResult(success=right, handled=False)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 — aiosmtpd's
        message = email.message_from_bytes(envelope.content or b"", policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 OK"

    def up(self) -> None:
        self._controller.start()

    def down(self) -> None:
        self._controller.stop(no_assert=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[trustme.CA]:
    """A certificate authority that this process trusts, as a site's own would be."""
    made, file = trustme.CA(), tmp_path_factory.mktemp("ca") / "ca.pem"
    made.cert_pem.write_to_path(str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        patch.setenv("REQUESTS_CA_BUNDLE", str(file))
        yield made


@pytest.fixture
def room(tmp_path: Path) -> Room:
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root, ignore=shutil.ignore_patterns("__pycache__"))
    return Room(root)


@pytest.fixture
def chat(authority: trustme.CA) -> Iterator[Chat]:
    with Chat().up(authority) as service:
        yield service


@pytest.fixture
def slack(room: Room, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setattr("apprise.plugins.slack.NotifySlack.webhook_url", f"{chat.url}/services")
    monkeypatch.setenv("CHAT_URL", f"slack://{SLACK}/#gpu-ops")
    room.route("ops", notify={"channel": "#gpu-ops", "credentials": {"env": "CHAT_URL"}})
    return chat


@pytest.fixture
def pager(room: Room, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Chat:
    lookup = {"us": f"{chat.url}/v2/enqueue"}
    monkeypatch.setattr("apprise.plugins.pagerduty.PAGERDUTY_API_LOOKUP", lookup)
    monkeypatch.setenv("PAGER_URL", f"pagerduty://{PASSWORD}@canary-apikey")
    room.route("pager", notify={"channel": "gpu fleet", "credentials": {"env": "PAGER_URL"}})
    return chat


@pytest.fixture
def post(room: Room, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostOffice]:
    office = PostOffice(authority)
    monkeypatch.setenv("MAIL_URL", office.url())
    room.route("mail", notify={"channel": "ops by mail", "credentials": {"env": "MAIL_URL"}})
    office.up()
    yield office
    office.down()


def many(count: int) -> list[Ticket]:
    places = [(TicketPlace(f"n{one}", "lab", f"r{one % 7}", 1),) for one in range(count)]
    return [replace(ticket(f"k/{one}"), places=places[one], severity="degraded") for one in range(count)]


# Slack


def test_a_flood_of_500_tickets_is_one_message_that_says_where_they_are(room: Room, slack: Chat) -> None:
    room.wants(*many(500))
    assert room.deliver() == []
    (text,) = slack.texts
    lines = text.splitlines()
    assert lines[0] == "assay: 500 tickets opened"
    details = [line for line in lines if line.startswith("  ")]
    assert len(lines) - len(details) == 1 + MAX_LINES + 2
    assert 0 < len(details) <= 3 * DETAILED
    assert lines[-2] == f"… and {500 - MAX_LINES} more; `assay tickets` lists all"
    assert lines[-1].startswith("racks: r0 72, r1 72")


def test_what_changes_soon_after_a_message_waits_for_the_next_one(room: Room, slack: Chat) -> None:
    first, second, third = many(3)
    room.wants(first)
    room.deliver()
    for wanted in ([first, second], [first, second, third], [second, third]):
        room.wants(*wanted)
        assert room.deliver() == []
    assert len(slack.texts) == 1, "all this was within ten minutes"
    room.clock.sleep(600)
    room.deliver()
    assert slack.texts[1].splitlines()[0] == "assay: 2 tickets opened, 1 ticket closed"
    room.clock.sleep(600)
    room.deliver()
    assert len(slack.texts) == 2, "nothing new, no message"


def test_tickets_that_were_closed_before_anybody_heard_of_them_are_not_told(room: Room, slack: Chat) -> None:
    room.wants(ticket())
    room.wants()
    room.deliver()
    assert slack.requests == []


def test_a_title_that_calls_everybody_is_plain_text(room: Room, slack: Chat) -> None:
    room.wants(replace(ticket(), title="<!channel> *GPU* & <https://evil.example|click>"))
    room.deliver()
    (text,) = slack.texts
    assert "<" not in text
    assert text.count("&lt;!channel&gt;") == 2, "in the headline and below"


def test_a_route_tells_only_of_what_it_selects(room: Room, slack: Chat) -> None:
    grave = replace(ticket("grave"), title="grave", severity="catastrophic")
    mild = replace(ticket("mild"), title="mild", severity="informational")
    here = {"channel": "#x", "credentials": {"env": "CHAT_URL"}}
    room.route("ops", notify={**here, "severities": ["catastrophic"]})
    room.route("other", notify={**here, "pools": ["another"]})
    room.wants(grave, mild)
    room.deliver()
    (text,) = slack.texts
    assert text.startswith("assay: opened: grave")


# Journal and back-off


def test_a_service_that_is_away_gets_the_same_message_later(room: Room, slack: Chat) -> None:
    slack.troubles.append(Trouble("POST", times=3, status=503))
    room.wants(ticket())
    (lack,) = room.deliver()
    assert (lack.route, "answers 503" in lack.reason) == ("ops", True)
    room.deliver()
    assert len(slack.requests) == 3, "it is left alone for a minute"
    room.clock.sleep(61)
    assert room.deliver() == []
    kinds = [entry.kind for entry in room.desk.ledger.entries(kinds=[DigestStartedEntry.kind, DigestSentEntry.kind])]
    assert kinds == ["digest.started", "digest.sent"]


def test_a_message_whose_answer_was_lost_is_sent_again_as_itself_and_says_so(room: Room, pager: Chat) -> None:
    pager.troubles.append(Trouble("POST", times=3, cut=True, after=True))
    room.wants(ticket())
    assert len(room.deliver()) == 1
    room.wants(ticket(), ticket("another"))
    room.clock.sleep(60)
    assert room.deliver() == []
    assert len({request.body["dedup_key"] for request in pager.requests}) == 1, "one incident"
    notes = ["you may have it already" in str(request.body) for request in pager.requests]
    assert notes == [False, True, True, True]
    assert "another" not in str(pager.requests[-1].body), "what came later is in the next message"


def test_secrets_are_in_no_message_error_or_entry(room: Room, slack: Chat) -> None:
    slack.troubles.append(Trouble("POST", times=3, status=403))
    room.wants(ticket())
    told = [str(room.deliver()), str(room.said), (room.root / ".assay" / "delivery.json").read_text()]
    told += [str(entry.body) for entry in room.desk.ledger.entries()]
    assert "answers 403" in told[0]
    assert not [text for text in told if "canary" in text]


def test_a_secret_that_is_no_address_is_refused_unseen(
    room: Room, slack: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_URL", "xoxb-canary")
    room.wants(ticket())
    (lack,) = room.deliver()
    assert "not the URL of a channel" in lack.reason
    assert "canary" not in lack.reason
    assert slack.requests == []


def test_a_certificate_of_a_stranger_is_not_trusted(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    with Chat().up(trustme.CA()) as impostor:
        monkeypatch.setenv("CHAT_URL", impostor.url.replace("https", "jsons"))
        room.route("ops", notify={"channel": "#gpu-ops", "credentials": {"env": "CHAT_URL"}})
        room.wants(ticket())
        (lack,) = room.deliver()
    assert "could not be sent" in lack.reason
    assert impostor.requests == []


# PagerDuty, Teams and e-mail


def test_an_incident_ends_when_the_last_of_its_tickets_is_closed(room: Room, pager: Chat) -> None:
    first, second = many(2)
    for wanted in ([first, second], [second], []):
        room.wants(*wanted)
        room.clock.sleep(600)
        assert room.deliver() == []
    events = [(request.body["event_action"], request.body["dedup_key"]) for request in pager.requests]
    assert [action for action, _ in events] == ["trigger", "resolve"]
    assert events[0][1] == events[1][1]
    assert pager.requests[0].body["payload"]["severity"] == "warning"
    assert pager.requests[0].body["routing_key"] == PASSWORD


def test_teams_gets_a_card_whose_texts_are_no_markdown(room: Room, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMS_URL", chat.url.replace("https", "workflows") + "/flow-canary/signature-canary")
    room.route("teams", notify={"channel": "GPU operations", "credentials": {"env": "TEAMS_URL"}})
    room.wants(replace(ticket(), title="[click](https://evil.example)"))
    assert room.deliver() == []
    (attachment,) = chat.requests[0].body["attachments"]
    for block in attachment["content"]["body"]:
        assert "[click](" not in block.get("text", "")


def test_mail_is_encrypted_and_logged_in(room: Room, post: PostOffice) -> None:
    room.wants(replace(ticket(), title="no link\r\nBcc: everybody@evil.example"))
    assert room.deliver() == []
    (message,) = post.messages
    assert message["To"] == "ops@acme.example"
    assert message["Bcc"] is None
    assert message["Subject"] == "assay: opened: no link Bcc: everybody@evil.example"
    assert "opened: no link" in str(message)


def test_a_wrong_password_is_an_error_without_the_password(
    room: Room, post: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_URL", post.url("canary-wrong"))
    room.wants(ticket())
    (lack,) = room.deliver()
    assert "could not be sent" in lack.reason
    assert "canary" not in lack.reason
    assert post.messages == []


def test_a_mail_server_that_sends_a_byte_now_and_then_is_left(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.tell.messages.people_channel.DELIVERY_S", 1.0)
    server, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip() -> None:
        client, _ = server.accept()
        with contextlib.suppress(OSError):
            while not ended.wait(0.05):
                client.sendall(b"2")

    threading.Thread(target=drip, daemon=True).start()
    port = server.getsockname()[1]
    monkeypatch.setenv("MAIL_URL", f"mailto://127.0.0.1:{port}?from=a@acme.example&to=b@acme.example")
    room.route("mail", notify={"channel": "ops", "credentials": {"env": "MAIL_URL"}})
    room.wants(ticket())
    (failed,) = room.deliver(immediately=True)
    ended.set()
    server.close()
    assert "could not be sent" in failed.reason


@pytest.mark.parametrize(
    "url",
    [
        "mailto://a:canary@mail.acme.example?from=a@acme.example",
        "mailtos://a:canary@mail.acme.example?verify=no&from=a@acme.example",
        "mailtos://a:canary@mail.acme.example?mode=insecure&from=a@acme.example",
        "json://acme.example/canary",
        "http://acme.example/canary",
        "syslog://canary",
    ],
)
def test_a_secret_leaves_this_machine_in_the_clear_for_nobody(
    room: Room, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("MAIL_URL", url)
    room.route("mail", notify={"channel": "ops", "credentials": {"env": "MAIL_URL"}})
    room.wants(ticket())
    (failed,) = room.deliver(immediately=True)
    assert "in the clear" in failed.reason or "not the URL" in failed.reason
    assert "canary" not in failed.reason


# Pure parts


EVENTS = st.lists(st.sampled_from(["opened", "reopened", "closed", "updated"]), min_size=1, max_size=6)


def record_of(events: list[str], title: str = "t") -> TicketRecord:
    history = tuple(TicketEvent(f"2026-11-21T12:00:{second:02}+00:00", what) for second, what in enumerate(events))
    closed_at = history[-1].at if events[-1] == "closed" else ""
    return TicketRecord(replace(ticket(), title=title), history[0].at, closed_at=closed_at, history=history)


@given(EVENTS)
def test_what_was_told_is_not_told_again_and_what_is_new_always_is(events: list[str]) -> None:
    record, settings = record_of(events), DigestSettings()
    news = find_news([record], {}, settings)
    assert bool(news) == (events[-1] != "closed" and set(events) != {"updated"})
    told = {item.record.ticket.id: item.event.at for item in news}
    assert find_news([record], told, settings) == []
    closed = TicketEvent("2026-11-21T13:00:00+00:00", "closed")
    later = replace(record, history=(*record.history, closed), closed_at=closed.at)
    assert bool(find_news([later], told, settings)) == bool(news)


@given(st.lists(st.text(max_size=400), min_size=1, max_size=60))
def test_a_message_is_short_and_no_title_makes_a_line(titles: list[str]) -> None:
    records = [record_of(["opened"], title) for title in titles]
    items = tuple(DigestItem(record, record.history[0]) for record in records)
    digest = Digest("d", "ops", items, may_repeat=True)
    lines = [format_headline(digest), *format_digest_lines(digest)]
    assert len(lines) <= 1 + MAX_LINES + 3 + 3 * DETAILED
    assert all(len(line) < MAX_TITLE + 150 and "\n" not in line for line in lines)
