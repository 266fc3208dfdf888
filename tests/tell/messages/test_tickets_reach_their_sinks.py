"""Tickets at their sinks: once each, as they now are, whatever a sink or a kill does in between."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.act.tickets.ticket_diff import list_tickets
from assay.adapters.tickets import sink
from assay.adapters.tickets.markdown import find_ticket_mark, format_ticket_markdown, format_ticket_title
from assay.cli.app import app
from assay.declare.check import check_repository
from assay.model.ticket import Ticket, TicketEvent, TicketRecord
from assay.tell.messages.delivery import compute_ticket_version
from assay.tell.messages.routes import PostponedDeliveries
from tests.support.forked_assay import run_assay
from tests.support.forked_python import ForkedAssay
from tests.support.places import SMALLEST
from tests.support.ticket_room import Room, ticket
from tests.support.ticket_sinks import GitHub, Jira, Trouble, Webhook

TOKEN = "canary-7f3a9c51e2"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("SINK_TOKEN", TOKEN)
    return Room(root)


def answers_within(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let a sink have so long for an answer."""
    monkeypatch.setattr(sink, "REQUEST_TIMEOUT_S", seconds)
    monkeypatch.setattr(sink.SinkHttpClient.__init__, "__defaults__", (seconds,))


@pytest.fixture
def github(room: Room) -> Iterator[GitHub]:
    with GitHub(TOKEN).up() as service:
        here = {"repository": "acme/fabric", "api": service.url, "credentials": {"env": "SINK_TOKEN"}}
        room.route("issues", github=here)
        yield service


@pytest.fixture
def jira(room: Room) -> Iterator[Jira]:
    with Jira(f"Bearer {TOKEN}").up() as service:
        room.route("jira", jira={"url": service.url, "project": "DC", "credentials": {"env": "SINK_TOKEN"}})
        yield service


@pytest.fixture
def webhook(room: Room) -> Iterator[Webhook]:
    with Webhook().up() as service:
        room.route("hook", webhook={"url": f"{service.url}/in", "credentials": {"env": "SINK_TOKEN"}})
        yield service


# What a technician reads


def test_without_a_route_each_ticket_is_a_markdown_file(room: Room) -> None:
    room.wants(ticket())
    assert room.deliver() == []
    (file,) = (room.root / ".assay" / "tickets").iterdir()
    text = file.read_text()
    assert file.name == f"{ticket().id}.md"
    assert find_ticket_mark(text) == ticket().id
    for told in ("r1-n1-p1", "r9-l1-p7", "U40", "no link", "a loose plug", "1. reseat it", "fabric scan compute"):
        assert told in text


def test_a_file_follows_its_ticket_through_closing_and_reopening(room: Room) -> None:
    file = room.root / ".assay" / "tickets" / f"{ticket().id}.md"
    for wanted, told in (([ticket()], "Open since"), ([], "Closed at"), ([ticket(seen="again")], "reopened 1×")):
        room.wants(*wanted)
        room.deliver()
        assert told in file.read_text()
    assert "reopened: seen again 1 min after it was closed by scan 7" in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_file_that_somebody_deleted_comes_back_and_one_that_is_there_is_left_alone(room: Room) -> None:
    room.wants(ticket())
    room.deliver()
    (file,) = (room.root / ".assay" / "tickets").iterdir()
    before = file.stat().st_mtime_ns
    room.deliver()
    assert file.stat().st_mtime_ns == before
    file.unlink()
    room.deliver()
    assert file.exists()
    assert len(room.delivered()) == 1


ONE = (TicketEvent("2026-11-21", "reopened", "calm"),)


def calm(one: Ticket) -> Ticket:
    return replace(
        one, title="calm", steps="\n".join("calm" for _ in one.steps.splitlines()), cause="calm", seen="calm"
    )


def outside_fences(text: str) -> list[str]:
    """Return the headings that a reader of Markdown sees, by the rule of CommonMark for fences."""
    fence, found = "", []
    for line in text.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.removesuffix("text")
        elif line.startswith("#"):
            found.append(line)
    assert not fence, "every fence ends"
    return found


@given(st.text(max_size=60), st.text(max_size=60))
def test_nothing_that_was_seen_can_pass_for_the_mark_of_another_ticket(name: str, seen: str) -> None:
    hostile = f"{name}\n<!-- assay-ticket: 0000000000000000 -->\n```\n# {seen}"
    one = replace(ticket(seen=hostile), title=hostile, steps=hostile, cause=hostile)
    text = format_ticket_markdown(
        TicketRecord(one, "2026-11-21", history=(TicketEvent("2026-11-21", "reopened", hostile),))
    )
    assert find_ticket_mark(text) == one.id
    assert "\n" not in format_ticket_title(TicketRecord(one, ""))
    assert len(outside_fences(text)) == len(
        outside_fences(format_ticket_markdown(TicketRecord(calm(one), "2026-11-21", history=ONE)))
    )


def test_a_lab_s_tickets_leave_the_machine_for_nobody(room: Room, github: GitHub) -> None:
    room.in_lab = True
    room.wants(ticket())
    assert room.deliver() == []
    assert github.requests == []
    assert [one["sink"] for one in room.delivered()] == ["files"]


# GitHub


def test_a_github_issue_is_opened_once_changed_closed_and_reopened(room: Room, github: GitHub) -> None:
    states = []
    for wanted in ([ticket()], [ticket()], [ticket(seen="two links gone")], [], [ticket()]):
        room.wants(*wanted)
        assert room.deliver() == []
        states.append(github.issues[0]["state"])
    assert states == ["open", "open", "open", "closed", "open"]
    assert [text.split()[3] for text in github.comments[1]] == ["closed:", "reopened:"]
    assert len(github.issues) == 1
    assert find_ticket_mark(github.issues[0]["body"]) == ticket().id
    assert github.issues[0]["labels"] == ["assay"]
    assert len(room.delivered()) == 4, "one line in the ledger for each change"
    assert {one["external"] for one in room.delivered()} == {github.issues[0]["html_url"]}


def test_many_tickets_cost_one_look_and_a_request_each(room: Room, github: GitHub) -> None:
    room.wants(*(ticket(str(number)) for number in range(120)))
    room.deliver()
    assert (len(github.asked("GET")), len(github.asked("POST")), len(github.asked("PATCH"))) == (1, 120, 0)
    github.requests.clear()
    room.deliver()
    assert github.requests == []


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble("POST", cut=True, after=True),
        Trouble("POST", status=502, after=True),
        Trouble("POST", status=500),
        Trouble("GET", status=503, times=2),
        Trouble("GET", cut=True),
    ],
    ids=["answer cut", "answer replaced", "refused inside", "away for a moment", "line cut"],
)
def test_an_answer_that_is_lost_doubles_no_issue(room: Room, github: GitHub, trouble: Trouble) -> None:
    github.troubles.append(replace(trouble))
    room.wants(ticket())
    assert room.deliver() == []
    assert len(github.issues) == 1
    assert len(room.delivered()) == 1


def test_an_answer_that_comes_too_late_doubles_no_issue(
    room: Room, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers_within(monkeypatch, 3.0)  # others load this machine
    github.troubles.append(Trouble("POST", delay_s=4.0, after=True))
    room.wants(ticket())
    assert room.deliver() == []
    assert len(github.issues) == 1
    assert len(room.delivered()) == 1


def test_an_issue_that_was_deleted_is_opened_anew(room: Room, github: GitHub) -> None:
    room.wants(ticket())
    room.deliver()
    github.issues[0]["deleted"] = True
    room.wants(ticket(seen="still"))
    room.deliver()
    assert room.delivered()[-1]["external"].endswith("/issues/2")


def test_a_route_that_is_pointed_elsewhere_touches_no_issue_of_the_same_number(room: Room, github: GitHub) -> None:
    room.wants(ticket())
    room.deliver()
    with GitHub(TOKEN).up() as other:
        other.issues.append({"number": 1, "labels": [], "body": "a stranger's", "html_url": "…/1"})
        here = {"repository": "acme/other", "api": other.url, "credentials": {"env": "SINK_TOKEN"}}
        room.route("issues", github=here)
        room.deliver()
        assert other.issues[0]["body"] == "a stranger's"
        assert len(other.issues) == 2


def test_work_that_was_over_before_a_sink_heard_of_it_is_not_told(room: Room, github: GitHub) -> None:
    room.wants(ticket())
    room.wants()
    assert room.deliver() == []
    assert github.requests == []


def test_a_kill_between_the_request_and_the_journal_leaves_one_issue(room: Room, github: GitHub) -> None:
    room.wants(ticket())
    command = [sys.executable, "-m", "assay", "tickets", "deliver", "--fleet", str(room.root)]
    pids: SimpleQueue[int] = SimpleQueue()  # the request may come before we know whose it is
    github.troubles.append(Trouble("POST", after=True, cut=True, then=lambda: os.kill(pids.get(), signal.SIGKILL)))
    child = ForkedAssay(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pids.put(child.pid)
    assert child.wait(60) == -signal.SIGKILL
    assert (len(github.issues), room.delivered()) == (1, [])
    again = run_assay("tickets", "deliver", "--fleet", room.root)
    assert again.returncode == 0, again.stderr
    assert github.issues[0]["html_url"] in again.stdout
    assert (len(github.issues), len(room.delivered())) == (1, 1)


# Patience


def test_a_sink_that_asks_for_patience_gets_it(room: Room, github: GitHub) -> None:
    github.troubles.append(Trouble("GET", status=429, headers={"Retry-After": "2"}))
    room.wants(ticket())
    assert room.deliver() == []
    assert room.pauses == [2.0]


@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {"Retry-After": "1800"}), (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"})],
)
def test_one_that_asks_for_more_is_left_alone_so_long(
    room: Room, github: GitHub, status: int, headers: dict[str, str]
) -> None:
    github.troubles.append(Trouble("GET", status=status, headers=headers, times=9))
    room.wants(ticket())
    (failed,) = room.deliver()
    assert datetime.fromisoformat(failed.retry_at) >= room.clock.now() + timedelta(seconds=1800)
    (again,) = room.deliver()
    assert again == failed
    assert len(github.requests) == 1, "nobody asks before the time"


@pytest.mark.parametrize("asked", ["²", "soon", "-1", "9" * 5000])
def test_a_wait_that_makes_no_sense_is_some_wait(asked: str) -> None:
    assert sink._parse_wait_s({"Retry-After": asked}) > 0


def test_each_failure_doubles_the_wait_and_a_success_forgets_it(room: Room, github: GitHub) -> None:
    github.troubles.append(Trouble("GET", status=500, times=9))
    room.wants(ticket())
    waits = []
    for _ in range(3):
        (failed,) = room.deliver()
        waits.append(datetime.fromisoformat(failed.retry_at) - room.clock.now())
        room.clock.at = datetime.fromisoformat(failed.retry_at)
    assert waits == [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4)]
    assert room.deliver() == []
    assert json.loads((room.root / ".assay" / "delivery.json").read_text()) == {}


def test_a_person_who_asks_need_not_wait(room: Room, github: GitHub) -> None:
    github.troubles.append(Trouble("GET", status=500, times=3))
    room.wants(ticket())
    assert room.deliver() != []
    assert room.deliver(immediately=True) == []


def test_one_ticket_that_is_refused_keeps_no_other_back(room: Room, github: GitHub) -> None:
    github.troubles.append(Trouble("POST", status=422))
    room.wants(ticket("a"), ticket("b"))
    (failed,) = room.deliver()
    assert failed.ticket == ticket("a").id
    assert "answers 422" in failed.reason
    assert len(github.issues) == 1


@pytest.mark.parametrize("content", ["", "[]", '{"issues": 7}', '{"issues": {"until": "x"}}', "\0"])
def test_a_damaged_account_of_what_waits_is_forgotten(tmp_path: Path, content: str) -> None:
    (tmp_path / "d.json").write_text(content)
    assert PostponedDeliveries(tmp_path / "d.json").find_retry_time("issues", datetime.now(UTC)) == ""


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_a_service_that_sends_a_byte_now_and_then_is_cut_off(
    room: Room, github: GitHub, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers_within(monkeypatch, 0.5)
    github.troubles.append(Trouble("GET", drip=start, times=9))
    room.wants(ticket())
    (failed,) = room.deliver()
    assert "no answer within 0.5 s" in failed.reason, "the bytes end after 10 s"


@pytest.mark.parametrize("status", [200, 301, 401, 403, 404, 418, 500])
def test_one_sink_that_fails_stops_neither_the_others_nor_the_pass(room: Room, github: GitHub, status: int) -> None:
    github.troubles += [Trouble("GET", status=status, times=99), Trouble("POST", status=status, times=99)]
    room.route("files", markdown={"folder": "synced"})
    room.wants(ticket())
    (failed,) = room.deliver()
    assert failed.route == "issues"
    assert room.said
    assert (room.root / "synced" / f"{ticket().id}.md").exists()
    assert [one["sink"] for one in room.delivered()] == ["files"]


def test_a_service_that_is_not_there_and_a_secret_that_is_not_set_are_told(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.route("away", webhook={"url": "http://127.0.0.1:9/in", "credentials": {"env": "SINK_TOKEN"}})
    room.route("unset", webhook={"url": "http://127.0.0.1:9/in", "credentials": {"env": "NO_SUCH_TOKEN"}})
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    room.wants(ticket())
    told = {one.route: one.reason for one in room.deliver()}
    assert "no connection" in told["away"]
    assert "the environment variable NO_SUCH_TOKEN is not set" in told["unset"]


# Jira


@pytest.mark.parametrize(
    ("version", "secret", "authorization"),
    [
        (2, TOKEN, f"Bearer {TOKEN}"),
        (3, f"bot@site:{TOKEN}", f"Basic {base64.b64encode(f'bot@site:{TOKEN}'.encode()).decode()}"),
    ],
)
def test_a_jira_issue_moves_with_its_ticket_and_is_commented_once(
    room: Room, monkeypatch: pytest.MonkeyPatch, version: int, secret: str, authorization: str
) -> None:
    monkeypatch.setenv("SINK_TOKEN", secret)
    with Jira(authorization, version).up() as jira:
        here = {"url": jira.url, "project": "DC", "version": version, "credentials": {"env": "SINK_TOKEN"}}
        room.route("jira", jira=here)
        states = []
        for wanted in ([ticket()], [], [ticket(seen="again")]):
            room.wants(*wanted)
            assert room.deliver() == []
            states.append(jira.issues["DC-1"]["status"])
        assert states == ["To Do", "Done", "To Do"]
        assert list(jira.issues) == ["DC-1"]
        assert len(jira.issues["DC-1"]["comments"]) == 2
        assert room.delivered()[-1]["external"] == f"{jira.url}/browse/DC-1"


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_jira_s_lost_answers_double_neither_issues_nor_comments(room: Room, jira: Jira, method: str) -> None:
    for wanted in ([ticket()], []):
        jira.troubles.append(Trouble(method, times=2, cut=True, after=True))
        room.wants(*wanted)
        assert room.deliver() == []
        jira.troubles.clear()
    assert len(jira.issues) == 1
    assert len(jira.issues["DC-1"]["comments"]) == 1


def test_a_workflow_without_a_way_is_told_with_the_ways_that_there_are(room: Room, jira: Jira) -> None:
    here = {"url": jira.url, "project": "DC", "credentials": {"env": "SINK_TOKEN"}, "close_by": "Verified"}
    room.route("jira", jira=here)
    room.wants(ticket())
    room.deliver()
    room.wants()
    (failed,) = room.deliver()
    assert "It has these: To Do, In Progress, Done" in failed.reason
    assert "close_by" in failed.reason


# Webhook


def test_a_webhook_gets_each_change_signed(room: Room, webhook: Webhook) -> None:
    for wanted in ([ticket()], [], [ticket()]):
        room.wants(*wanted)
        assert room.deliver() == []
    assert [one["event"] for one in webhook.taken.values()] == ["opened", "closed", "reopened"]
    for one in webhook.requests:
        content = one.headers["X-Assay-Timestamp"].encode() + b"." + one.raw
        code = hmac.new(TOKEN.encode(), content, hashlib.sha256).hexdigest()
        assert one.headers["X-Assay-Signature-256"] == f"sha256={code}"


def test_what_a_webhook_is_sent_twice_has_one_key(room: Room, webhook: Webhook) -> None:
    webhook.troubles.append(Trouble("POST", times=2, cut=True, after=True))
    room.wants(ticket())
    assert room.deliver() == []
    assert (len(webhook.requests), len(webhook.taken)) == (3, 1)


# The secret, the spec, the verb


def test_no_token_is_in_any_file_line_or_message(
    room: Room, github: GitHub, jira: Jira, webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    github.token = "another"  # it refuses ours, and repeats it in what it says
    room.wants(ticket())
    failed = room.deliver()
    assert [one.route for one in failed] == ["issues"]
    github.token = TOKEN
    github.troubles.append(Trouble("POST", status=500, after=True))
    room.deliver(immediately=True)
    told = CliRunner().invoke(app, ["tickets", "--fleet", str(room.root), "deliver", "--format", "json"])
    texts = {str(path): path.read_bytes() for path in room.root.rglob("*") if path.is_file()}
    texts["said"] = "\n".join([*room.said, *(one.reason for one in failed), caplog.text, told.output]).encode()
    spelt = [TOKEN.encode(), base64.b64encode(TOKEN.encode()).rstrip(b"=")]
    assert [name for name, content in texts.items() if any(one in content for one in spelt)] == []


def test_routes_are_checked_like_every_spec(room: Room, github: GitHub) -> None:
    assert check_repository(room.root, is_lab=True).problems == []
    room.route("both", markdown={"folder": "x"}, webhook={"url": "https://x", "credentials": {"env": "X"}})
    room.route("plain", webhook={"url": "http://example.com/in", "credentials": {"env": "X"}})
    room.route("told", webhook={"url": "https://x", "credentials": {"env": "X", "file": "y"}})
    assert sorted((one.code, Path(one.file).stem) for one in check_repository(room.root, is_lab=True).problems) == [
        ("ASY0003", "route-plain"),
        ("ASY0004", "route-both"),
        ("ASY0004", "route-told"),
    ]


def test_a_file_of_credentials_must_not_lie_in_the_repository(room: Room) -> None:
    room.route("hook", webhook={"url": "https://x", "credentials": {"file": "specs/token"}})
    assert [one.code for one in check_repository(room.root, is_lab=True).problems] == ["ASY0095"]


def test_the_verb_says_what_was_delivered_and_what_was_not(room: Room, github: GitHub) -> None:
    room.wants(ticket())
    github.troubles.append(Trouble("GET", status=401, times=1))
    words = ["tickets", "deliver", "--fleet", str(room.root)]
    failed = CliRunner().invoke(app, words)
    assert failed.exit_code == 2
    assert "not delivered to issues" in failed.stderr
    assert "not yet delivered to issues" in CliRunner().invoke(app, ["tickets", "--fleet", str(room.root)]).stderr
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (0, f"{ticket().id} → issues {github.issues[0]['html_url']}\n")
    assert CliRunner().invoke(app, words).stdout == "nothing new to deliver\n"
    shown = CliRunner().invoke(app, ["tickets", "--fleet", str(room.root)])
    assert ticket().id in shown.stdout


def test_a_version_changes_exactly_with_what_there_is_to_say(room: Room) -> None:
    room.wants(ticket())
    (one,) = list_tickets(room.desk.ledger.entries())
    assert compute_ticket_version(one) == compute_ticket_version(list_tickets(room.desk.ledger.entries())[0])
    assert compute_ticket_version(one) != compute_ticket_version(replace(one, ticket=ticket(seen="else")))
