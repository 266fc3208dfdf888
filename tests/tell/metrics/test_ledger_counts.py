"""What the ledger's entries count as: each event once, and the same however a process reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.model.entries.effects import (
    EffectDoneEntry,
    EffectFailedEntry,
    EffectIntentEntry,
    EffectTriedEntry,
    EffectUnknownEntry,
    EffectVerifiedEntry,
)
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.faults import FaultClearedEntry, FaultEntry, ObservationFailedEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, NodeLeftEntry, NodeRenamedEntry, TransitionEntry
from assay.model.entries.rollouts import CommitAdoptedEntry, RolloutAbortedEntry, RolloutFinishedEntry
from assay.model.entries.schedule_entries import NodeLoadedEntry, ScheduleRanEntry, VerificationMissedEntry
from assay.model.entries.tickets import TicketClosedEntry, TicketOpenedEntry, TicketReopenedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.ticket import Ticket
from assay.tell.metrics.families import Distribution
from assay.tell.metrics.ledger_counts import LEDGER_COUNTS, LedgerCounts

BEGIN = datetime(2026, 11, 23, tzinfo=UTC)
TICKET = Ticket("t1", "k1", "replace the cable", severity="degraded")


def make_entries(*steps: tuple[float, EntryContent, str]) -> list[LedgerEntry]:
    """Return entries from (seconds after BEGIN, content, node)."""
    contents = [(BEGIN + timedelta(seconds=after_s), content, node) for after_s, content, node in steps]
    entries = [
        content.make_entry(f"e{at}", when.isoformat(), node) for at, (when, content, node) in enumerate(contents)
    ]
    return [LedgerEntry(one.id, one.at, one.kind, one.node, one.body, seq) for seq, one in enumerate(entries, 1)]


def count(entries: list[LedgerEntry]) -> LedgerCounts:
    return LEDGER_COUNTS.fold(entries)


def numbers(counts: LedgerCounts, family: str) -> dict[tuple[str, ...], float | Distribution]:
    """Return the series of a family that are not 0."""
    return {one.values: one.number for one in counts.series() if one.family == family and one.number}


def fault(ident: str = "f1", times: int = 1) -> FaultEntry:
    seen = {"first_seen": BEGIN.isoformat(), "last_seen": BEGIN.isoformat(), "detail": "", "marks": {}, "times": ()}
    return FaultEntry(ident, "gpu.xid.79", "a/n1/gpu0", "catastrophic", "hardware", "reboot", times, **seen)  # type: ignore[arg-type]


def test_a_stay_ends_with_a_move_and_counts_in_the_pool_of_the_node() -> None:
    counts = count(
        make_entries(
            (0, NodeEnrolledEntry("a", "seatrial"), "n1"), (7200, TransitionEntry("seatrial", "test", "d1"), "n1")
        )
    )
    assert numbers(counts, "assay_transitions_total") == {("a", "seatrial", "test"): 1}
    (stay,) = numbers(counts, "assay_stay_duration_seconds").values()
    assert stay == Distribution((0, 0, 1, 0, 0, 0, 0, 0, 0, 0), 7200)


def test_a_renamed_machine_takes_its_stay_along_and_one_that_left_has_none() -> None:
    counts = count(
        make_entries(
            (0, NodeEnrolledEntry("a", "test", "S1"), "n1"),
            (10, NodeRenamedEntry("S1", "n1", "b"), "n2"),
            (10, NodeLeftEntry("n2"), "n1"),
            (60, TransitionEntry("test", "production", "d1"), "n2"),
            (70, TransitionEntry("test", "production", "d2"), "n1"),
        )
    )
    stays = numbers(counts, "assay_stay_duration_seconds")
    assert {labels: stay.total for labels, stay in stays.items() if isinstance(stay, Distribution)} == {
        ("b", "test"): 60
    }


def test_an_effect_counts_once_when_a_reading_has_ended_it() -> None:
    counts = count(
        make_entries(
            (0, EffectIntentEntry("x1", "reboot", "d1"), "n1"),
            (20, EffectDoneEntry("x1", "reboot", ""), "n1"),
            (25, EffectTriedEntry("x1", "reboot", 1, "still up", BEGIN.isoformat()), "n1"),
            (30, EffectUnknownEntry("x1", "reboot", "no answer"), "n1"),
            (90, EffectVerifiedEntry("x1", "reboot", "boot id changed"), "n1"),
            (95, EffectVerifiedEntry("x1", "reboot", "the same again"), "n1"),
            (95, EffectIntentEntry("x2", "cordon", "d1"), "n2"),
            (96, EffectFailedEntry("x2", "cordon", "no"), "n2"),
            (97, EffectIntentEntry("x3", "cordon", "d1"), "n3"),
        )
    )
    assert numbers(counts, "assay_effects_total") == {("reboot", "verified"): 1, ("cordon", "failed"): 1}
    assert numbers(counts, "assay_effect_retries_total") == {("reboot",): 1}
    assert numbers(counts, "assay_effect_unreadable_total") == {("reboot",): 1}
    assert [(one.action, one.status) for one in counts.effects.values()] == [("cordon", "intent")]
    times = numbers(counts, "assay_effect_duration_seconds")
    assert times["reboot", "verified"] == Distribution((0, 0, 0, 0, 1, 0, 0, 0, 0, 0), 90)


def test_a_failure_that_may_come_is_counted_as_none_before() -> None:
    of_nothing = {(one.family, *one.values): one.number for one in LedgerCounts().series()}
    assert of_nothing["assay_effects_total", "reboot", "failed"] == 0
    assert of_nothing["assay_rollouts_total", "aborted"] == 0


def test_a_fault_counts_again_only_after_its_end() -> None:
    seen = [(0, fault(), "n1"), (1, fault(times=2), "n1")]
    assert numbers(count(make_entries(*seen)), "assay_faults_total") == {("gpu.xid.79", "catastrophic"): 1}
    again = make_entries(*seen, (2, FaultClearedEntry("f1", "gone"), "n1"), (3, fault(times=3), "n1"))
    assert numbers(count(again), "assay_faults_total") == {("gpu.xid.79", "catastrophic"): 2}


def test_a_closed_ticket_is_not_open_and_a_reopened_one_is() -> None:
    closed = [(0, TicketOpenedEntry(TICKET), "n1"), (9, TicketClosedEntry("t1", "", "scan"), "n1")]
    assert count(make_entries(*closed)).tickets == {}
    counts = count(make_entries(*closed, (20, TicketReopenedEntry(TICKET, "again", 1), "n1")))
    assert [(one.severity, one.opened_s - BEGIN.timestamp()) for one in counts.tickets.values()] == [("degraded", 20)]
    assert numbers(counts, "assay_tickets_total") == {("opened",): 1, ("closed",): 1, ("reopened",): 1}


def test_a_visit_that_a_customer_cut_says_how_long_the_customer_waited() -> None:
    counts = count(
        make_entries(
            (0, NodeLoadedEntry("idle", "", (), {}, "", None), "n1"),
            (0, NodeLoadedEntry("idle", "", (), {}, "job 7 took it", 180), "n2"),
        )
    )
    assert numbers(counts, "assay_idle_visits_total") == {("idle", "done"): 1, ("idle", "cut"): 1}
    assert numbers(counts, "assay_idle_visit_customer_delay_seconds") == {
        ("idle",): Distribution((0, 0, 1, 0, 0, 0, 0, 0, 0, 0), 0.18)
    }


EVENTS = st.sampled_from(
    [
        NodeEnrolledEntry("a", "test", "S1"),
        TransitionEntry("test", "production", "d1"),
        TransitionEntry("production", "triage", "d2"),
        NodeLeftEntry("n2"),
        EffectIntentEntry("x1", "reboot", "d1"),
        EffectTriedEntry("x1", "reboot", 1, "no", BEGIN.isoformat()),
        EffectUnknownEntry("x1", "reboot", "no answer"),
        EffectVerifiedEntry("x1", "reboot", ""),
        fault(),
        FaultClearedEntry("f1", "gone"),
        ObservationFailedEntry("agent", "lost before they could be delivered: 3 kernel"),
        TicketOpenedEntry(TICKET),
        TicketClosedEntry("t1", "", ""),
        CommitAdoptedEntry("c0ffee"),
        RolloutFinishedEntry("r1", "all done"),
        RolloutAbortedEntry("r1", "ann", "wrong bundle"),
        ScheduleRanEntry("stale", "a", "staleness", BEGIN.isoformat(), 1, "done", "", {}),
        NodeLoadedEntry("idle", "", (), {}, "cut", 70),
        VerificationMissedEntry("idle", "", "in use"),
    ]
)


@given(
    st.lists(st.tuples(st.floats(0, 1e7), EVENTS, st.sampled_from(["n1", "n2"])), max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
)
@settings(deadline=None)
def test_a_process_that_starts_anew_counts_the_same(
    steps: list[tuple[float, EntryContent, str]], cuts: list[int]
) -> None:
    entries = make_entries(*steps)
    in_parts = LedgerCounts()
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(entries)], strict=True):
        in_parts = LEDGER_COUNTS.fold(entries[begin:end], in_parts)
    whole = count(entries)
    assert list(in_parts.series()) == list(whole.series())
    assert (in_parts.effects, in_parts.tickets) == (whole.effects, whole.tickets)
