"""A ticket sink that another distribution brings: one module and an entry point, by the real `assay`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assay.ledger.store import Ledger
from assay.model.facts import to_json
from assay.model.ledger_entry import LedgerEntry
from assay.model.ticket import Ticket
from tests.support.places import SMALLEST
from tests.support.plugin_distribution import PluginDistribution

PRINTER = '''
"""Tickets on a printer."""

from assay.fleetkit import CredentialReference, SinkSettings, TicketRefusal, format_ticket_markdown


class PrinterRoute(SinkSettings):
    destination_fields = ("queue",)

    queue: str
    copies: int = 1
    credentials: CredentialReference | None = None


class PrinterSink:
    settings_model = PrinterRoute
    is_local = False

    def __init__(self, settings, context):
        self.settings, self.context = settings, context

    def deliver(self, record, version, external_id):
        if record.ticket.title == "unprintable":
            raise TicketRefusal("the printer has no such letters", where=self.context.where)
        with (self.context.home / self.settings.queue).open("a") as paper:
            paper.write(f"{self.context.secret} {external_id}\\n")
            paper.write(format_ticket_markdown(record) * self.settings.copies)
        return f"page-{record.ticket.id}"

    def holds(self, external_id):
        return True
'''
ENTRY = {"assay.ticket_sinks": {"printer": "acme_printer:PrinterSink"}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    monkeypatch.setenv("PRINTER_PIN", "4711")
    shutil.copytree(SMALLEST, tmp_path / "fleet")
    return tmp_path / "fleet"


@pytest.fixture
def printer(tmp_path: Path) -> PluginDistribution:
    return PluginDistribution(tmp_path / "site", "acme-printer", ENTRY, acme_printer=PRINTER)


def declare(root: Path, sink: str) -> None:
    (root / "specs" / "route.yaml").write_text(f"kind: TicketRoute\nname: paper\n{sink}\n")


def open_ticket(root: Path, ident: str, title: str) -> None:
    (root / ".assay").mkdir(exist_ok=True)
    ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
    ticket, at = Ticket(ident, f"key/{ident}", title, "n1"), "2026-11-21T12:00:00+00:00"
    ledger.append(LedgerEntry(f"o-{ident}", at, "ticket.opened", "n1", {"ticket": ident, **to_json(ticket)}))
    ledger.close()


def test_its_settings_are_checked_by_its_own_model(root: Path, printer: PluginDistribution) -> None:
    declare(root, "printer: {queue: hall, credentials: {env: PRINTER_PIN}}")
    printer.assay("check", fleet=root)
    declare(root, "printer: {queue: hall, copys: 2}")
    wrong = printer.assay("check", fleet=root, exit_code=1)
    assert "specs/route.yaml:3:24" in wrong
    assert "printer.copys is not known here" in wrong
    assert "did you mean copies?" in wrong
    declare(root, "printer: {copies: two}")
    wrong = printer.assay("check", fleet=root, exit_code=1)
    assert "printer.queue is missing" in wrong
    assert "printer.copies" in wrong


def test_it_gets_tickets_secret_and_context_and_the_ledger_records_each_delivery(
    root: Path, printer: PluginDistribution
) -> None:
    declare(root, "printer: {queue: hall, credentials: {env: PRINTER_PIN}}")
    open_ticket(root, "a1", "reseat the GPU")
    open_ticket(root, "b2", "unprintable")
    told = printer.assay("tickets", "deliver", fleet=root, exit_code=2)
    assert "a1 → paper page-a1" in told
    assert "TicketRoute paper: the printer has no such letters" in told
    text = (root / ".assay" / "hall").read_text()
    assert text.startswith("4711 \n")
    assert "# reseat the GPU" in text
    assert "nothing new" not in told
    printer.assay("tickets", "deliver", fleet=root, exit_code=2)
    assert (root / ".assay" / "hall").read_text() == text, "what was delivered is not delivered again"


def test_without_its_distribution_the_route_is_an_error_with_the_sinks_that_there_are(root: Path) -> None:
    nothing = PluginDistribution(root.parent / "empty", "acme-nothing", {})
    declare(root, "printer: {queue: hall}")
    wrong = nothing.assay("check", fleet=root, exit_code=1)
    assert "printer is not known here" in wrong
    assert "markdown" in wrong


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("raise RuntimeError('needs a licence')\n", "RuntimeError: needs a licence"),
        (
            "class PrinterSink:\n    is_local = False\n",
            "acme_printer:PrinterSink has no settings_model, deliver, holds",
        ),
        ("", "AttributeError"),
    ],
)
def test_one_that_cannot_be_loaded_is_an_error_with_its_distribution(root: Path, source: str, reason: str) -> None:
    broken = PluginDistribution(root.parent / "site", "acme-printer", ENTRY, acme_printer=source)
    declare(root, "printer: {queue: hall}")
    wrong = broken.assay("check", fleet=root, exit_code=1)
    assert "specs/route.yaml:3" in wrong
    assert "the ticket sink 'printer' of the distribution acme-printer 1.2 cannot be loaded" in wrong
    assert reason in wrong
    declare(root, "markdown: {folder: tickets}")
    broken.assay("check", fleet=root)


def test_no_distribution_can_take_the_place_of_our_own(root: Path) -> None:
    entry = {"assay.ticket_sinks": {"markdown": "acme_printer:PrinterSink"}}
    other = PluginDistribution(root.parent / "site", "acme-printer", entry, acme_printer=PRINTER)
    declare(root, "markdown: {folder: tickets}")
    other.assay("check", fleet=root)
