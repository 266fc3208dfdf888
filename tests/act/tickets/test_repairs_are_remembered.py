"""The repairs of a machine, from the ledger's entries alone: under any name, with any part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from assay.act.tickets.repair_history import REPAIRS, RepairHistory, select_repairs
from assay.model.entries.assets import PartReplacedEntry, PartReturnedEntry, PartsSeenEntry, SeenPart
from assay.model.entries.effects import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.node_entries import CertifiedEntry, NodeEnrolledEntry, NodeRenamedEntry, TransitionEntry
from assay.model.entries.tickets import (
    TicketClosedEntry,
    TicketDoneEntry,
    TicketOpenedEntry,
    TicketReopenedEntry,
    TicketUpdatedEntry,
)
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.csv_rows import format_csv
from assay.model.ticket import Ticket, TicketPlace

START = datetime(2026, 11, 1, tzinfo=UTC)


class History:
    """Entries, a day apart."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.add(NodeEnrolledEntry("a", "production", "S-7"))

    def add(self, content, node="n7") -> str:
        number = len(self.entries)
        at = (START + timedelta(days=number)).isoformat()
        self.entries.append(content.make_entry(f"e{number}", at, node))
        return f"e{number}"

    def opened(self, ident="t1", key="incident/n7/f1", part="gpu3", node="n7", kind=TicketOpenedEntry, **more) -> None:
        title, places = more.pop("title", f"Exchange it: {part}"), (TicketPlace(node, port=part),)
        self.add(kind(Ticket(ident, key, title, node, places, seen="XID 79"), **more), node)

    def effect(self, action, verified=True, node="n7") -> None:
        self.add(EffectIntentEntry(f"x-{action}-{len(self.entries)}", action, "d"), node)
        if verified:
            intent = EffectIntentEntry.read(self.entries[-1])
            self.add(EffectVerifiedEntry(intent.effect, action, f"{action} read back"), node)

    def select(self, *wanted) -> list:
        return select_repairs(REPAIRS.fold(self.entries), *wanted)


@pytest.fixture
def history() -> History:
    return History()


def test_a_gpu_is_exchanged_and_each_step_names_its_entry(history):
    history.opened()
    history.opened(kind=TicketUpdatedEntry, title="Exchange gpu3 (GPU_SXM_4)")
    history.add(TicketDoneEntry("t1", "", "ann", "put in a new one"))
    certified = history.add(CertifiedEntry("bob", "looked at it"))
    history.add(PartsSeenEntry({"gpu3": SeenPart("gpu", "G-new", "G-old"), "gpu4": SeenPart("gpu", "G4", None)}, {}))
    history.effect("reboot")
    history.add(TicketClosedEntry("t1", "", "test_gpu passed"))
    [repair] = history.select()
    assert (repair.machine, repair.part, repair.kind, repair.wrong) == (
        "S-7",
        "gpu3",
        "gpu",
        "Exchange gpu3 (GPU_SXM_4)",
    )
    assert [(part.place, part.serial_out, part.serial_in) for part in repair.exchanged] == [("gpu3", "G-old", "G-new")]
    assert repair.who == ("ann", "bob")
    events = ["opened", "updated", "done", "certified", "exchanged", "reboot", "closed"]
    assert [step.event for step in repair.steps] == events
    assert {step.entry for step in repair.steps} <= {entry.id for entry in history.entries}
    assert repair.steps[3].entry == certified
    assert (repair.closed_by, repair.closed_at) == ("test_gpu passed", history.entries[-1].at)


def test_what_happens_after_the_ticket_until_the_node_is_open_again_belongs_to_it(history):
    history.opened(key="stay/n7/s", part="")
    history.add(TicketClosedEntry("t1", "", "it went to debug"))
    history.add(PartsSeenEntry({"gpu3": SeenPart("gpu", "G-new", "G-old")}, {}))
    history.effect("uncordon")
    history.add(PartsSeenEntry({"gpu4": SeenPart("gpu", "H-new", "H-old")}, {}))
    [repair] = history.select()
    assert [part.serial_out for part in repair.exchanged] == ["G-old"], "what comes later is another repair's"


def test_days_at_the_vendor_are_counted_for_the_machine_and_for_a_part_that_comes_back_elsewhere(history):
    history.opened(key="stay/n7/s", part="")
    history.effect("dossier", verified=False)
    history.add(TransitionEntry("rma", "onboard", "d"))
    assert history.select()[0].vendor_days == 1
    sent = history.entries[2].at
    history.add(PartReturnedEntry("G-old", "gpu", "gpu0", "n7", "gpu3", sent, ()), "n9")
    [repair] = history.select()
    assert (repair.vendor_days, repair.steps[-1].text) == (2, "gpu G-old is in n9")


def test_what_comes_back_is_counted_for_the_same_part_of_the_same_machine_under_any_name(history):
    history.opened()
    history.add(TicketClosedEntry("t1", "", "passed"))
    history.opened(kind=TicketReopenedEntry, reason="again", times_closed=1)
    assert history.select()[0].recurrences == 1
    history.add(NodeRenamedEntry("S-7", "n7", "a"), "n70")
    history.opened("t2", "incident/n70/f2", node="n70")
    history.opened("t3", "incident/n70/f3", part="psu1", node="n70")
    assert [(each.ticket, each.recurrences) for each in history.select()] == [("t3", 0), ("t2", 1), ("t1", 1)]
    assert [each.ticket for each in history.select("n70")] == ["t3", "t2", "t1"]
    assert history.select("n8") == []


@pytest.mark.parametrize(
    ("entry", "counted"),
    [
        (PartsSeenEntry({"gpu3": SeenPart("gpu", "G-new", "G-old")}, {}), 0),
        (PartsSeenEntry({"gpu4": SeenPart("gpu", "G-new", "G-old")}, {}), 2),
        (PartsSeenEntry({"gpu3": SeenPart("gpu", "G4", "G3"), "gpu4": SeenPart("gpu", "G3", "G4")}, {}), 2),
        (PartReplacedEntry("S-7", "S-8", "bmc"), 0),
    ],
)
def test_the_repairs_of_a_part_that_was_exchanged_are_not_those_of_the_new_one(history, entry, counted):
    for ticket in ("t1", "t2"):
        history.opened(ticket, f"incident/n7/{ticket}")
        history.add(TicketClosedEntry(ticket, "", "passed"))
    history.add(entry)
    history.opened("t3", "incident/n7/f3")
    assert history.select()[0].recurrences == counted


def test_a_repair_is_found_by_any_serial_number_of_it(history):
    history.opened()
    history.add(PartsSeenEntry({"gpu3": SeenPart("gpu", "G-new", "G-old")}, {}))
    for serial in ("S-7", "G-old", "G-new"):
        assert len(history.select("", serial)) == 1
    assert history.select("", "G-other") == []


def test_tickets_about_more_than_a_machine_are_no_repairs(history):
    history.opened(key="breaker/a")
    history.opened("t2", "capacity/a")
    assert history.select() == []


def test_a_copy_changes_for_itself(history):
    history.opened()
    before = REPAIRS.fold(history.entries)
    copy = before.copy()
    closed = TicketClosedEntry("t1", "", "passed").make_entry("e99", history.entries[-1].at, "n7")
    assert copy.apply(closed).repairs["t1"].closed_at
    assert not before.repairs["t1"].closed_at
    assert isinstance(copy, RepairHistory)


def test_the_csv_has_a_line_for_each_repair(history):
    from assay.cli.verbs.tickets import REPAIR_COLUMNS

    history.opened()
    lines = list(format_csv(REPAIR_COLUMNS, history.select()))
    assert lines[0].startswith("ticket,machine,node,part,kind,wrong,opened_at")
    assert lines[1].startswith("t1,S-7,n7,gpu3,gpu,Exchange it: gpu3,")
