"""What people would read, before anything is sent: cause, act, place, link and severity of each open ticket."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from assay.cli.app import app
from assay.model.errors import AssayError
from assay.model.ticket import TicketEvent, TicketRecord
from assay.tell.messages.digest import Digest, DigestItem, format_digest_lines
from tests.tell.fleet_with_history import HOSTILE, copy_fleet, make_fleet_with_history, make_ticket

ROUTES = {
    "gpu-ops": 'notify: {channel: "#ops", credentials: {env: NO_SUCH_SECRET}, severities: [degraded]}',
    "on-call": "notify: {channel: pager, credentials: {env: NO_SUCH_SECRET}, severities: [catastrophic]}",
    "tracker": "github: {repository: acme/fleet, credentials: {env: NO_SUCH_SECRET}}",
}


def declare(root: Path) -> None:
    (root / "specs/tickets").mkdir(exist_ok=True)
    for name, sink in ROUTES.items():
        text = f"kind: TicketRoute\nname: {name}\nowner: fleet-engineering\n{sink}\n"
        (root / f"specs/tickets/{name}.yaml").write_text(text)
    policy = root / "specs/lifecycle/default.yaml"
    policy.write_text(f"{policy.read_text()}\npages: https://assay.example.org\n")


def preview(root: Path) -> dict[str, str]:
    words = ["tickets", "preview", "--fleet", str(root), "--format", "json"]
    answer = CliRunner().invoke(app, words, catch_exceptions=False)
    assert answer.exit_code == 0
    return json.loads(answer.stdout)["messages"]


def test_a_preview_holds_what_people_need_and_sends_nothing(tmp_path: Path) -> None:
    make_fleet_with_history(tmp_path)
    declare(tmp_path)
    messages = preview(tmp_path)
    assert set(messages) == {"files", "gpu-ops", "tracker"}, "no catastrophic ticket is open"
    headline, line, cause, act, link = messages["gpu-ops"].splitlines()
    assert headline.startswith("assay: opened: Cable of n0009 flaps")
    assert "degraded, r03 U4" in line
    assert (cause, act) == ("  cause: a bad transceiver", "  do: Reseat both ends.")
    assert link == f"  https://assay.example.org/tickets/{make_ticket().id}"
    assert f"assay-ticket: {make_ticket().id}" in messages["tracker"]
    assert HOSTILE not in messages["tracker"].partition("```")[0]
    assert not (tmp_path / ".assay/delivery.json").exists()


def test_without_a_route_the_message_to_people_is_shown(tmp_path: Path) -> None:
    make_fleet_with_history(tmp_path)
    assert list(preview(tmp_path)) == ["files", "people"]
    assert "/tickets/" not in preview(tmp_path)["people"], "nobody says where pages are"


def test_what_was_seen_stands_in_a_message_with_marks_between_the_lines() -> None:
    ticket = replace(make_ticket(), cause="", seen="psu3 has LossOfInput\nPower supply 3 input lost.")
    event = TicketEvent("2026-11-21T12:00:00+00:00", "opened")
    item = DigestItem(TicketRecord(ticket, event.at, history=(event,)), event)
    assert "  cause: psu3 has LossOfInput; Power supply 3 input lost." in format_digest_lines(Digest("d", "r", (item,)))


def test_nothing_to_tell_is_said(tmp_path: Path) -> None:
    root = copy_fleet(tmp_path).root
    answer = CliRunner().invoke(app, ["tickets", "preview", "--fleet", str(root)])
    assert isinstance(answer.exception, AssayError)
