"""Waiting for news, leases by the database's clock, and sections that one process at a time goes through."""

from __future__ import annotations

import threading
import time

import pytest

from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.ledger.forks import Forked

AT = "2026-11-21T12:00:00+00:00"


def hold_a_lease(line, place, for_s):
    assert Ledger.open(place).claim_lease("rack-1", "first", for_s)
    line.send("held")
    time.sleep(60)


def hold_a_section(line, place):
    with Ledger.open(place).exclusive_section("deciding"):
        line.send("held")
        time.sleep(60)


def count_up(line, place, count):
    ledger = Ledger.open(place)
    line.send("ready")
    line.recv()
    for _ in range(40):
        with ledger.exclusive_section("deciding"):
            count.write_text(str(int(count.read_text()) + 1))


def claim_all(line, place, name):
    ledger = Ledger.open(place)
    line.send("ready")
    line.recv()
    line.send([rack for rack in map("rack-{}".format, range(30)) if ledger.claim_lease(rack, name, 60)])


def entry(id_: str, node: str = "n1") -> LedgerEntry:
    return LedgerEntry(id_, AT, "hold", node)


def at_once(*processes: Forked) -> None:
    for each in processes:
        assert each.hear() == "ready"
    for each in processes:
        each.say()


def test_the_head_is_the_number_of_the_newest_entry(ledger):
    assert ledger.head() == 0
    ledger.append(entry("a"), entry("b"))
    assert ledger.head() == ledger.entries()[-1].seq
    before = ledger.head()
    ledger.append(entry("a"))
    assert ledger.head() == before, "what is known already is no news"


def test_the_head_of_outcomes_grows_with_each_run(ledger):
    heads = [ledger.outcomes_head()]
    for run in ("r1", "r2"):
        ledger.record(SuiteRun(run, AT), [Outcome("c", "a/n1", "n1", "pass")])
        heads.append(ledger.outcomes_head())
    ledger.record(SuiteRun("r2", AT), [])
    assert heads == sorted(set(heads))
    assert ledger.outcomes_head() == heads[-1]


def test_later_runs_name_the_nodes_that_they_judged(ledger):
    ledger.record(SuiteRun("r1", AT), [Outcome("c", "a/n1", "n1", "pass"), Outcome("c", "a/n2", "n2", "pass")])
    head = ledger.outcomes_head()
    assert ledger.find_judged_nodes(head) == set()
    ledger.record(SuiteRun("r2", AT), [Outcome("c", "a/n2", "n2", "fail", "hot"), Outcome("d", "a/n2", "n2", "pass")])
    assert ledger.find_judged_nodes(head) == {"n2"}
    assert ledger.find_judged_nodes(0) == {"n1", "n2"}


def test_who_waits_is_told_as_soon_as_another_appends(ledger, place):
    told: list[tuple[int, float]] = []

    def wait() -> None:
        told.append((ledger.wait(0, 600), time.monotonic()))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    other = Ledger.open(place)
    other.append(entry("a"))
    appended = time.monotonic()
    waiting.join()
    other.close()
    ((head, at),) = told
    assert head == 1
    assert at - appended < 300, "long before the time to wait is over"


def test_news_from_before_the_waiting_is_told_at_once(ledger):
    ledger.append(entry("a"))
    assert ledger.wait(0, 30) == 1


def test_without_news_the_wait_ends_with_its_time(ledger):
    ledger.append(entry("a"))
    began = time.monotonic()
    assert ledger.wait(1, 0.15) == 1
    assert time.monotonic() - began >= 0.15


def test_waiting_costs_next_to_nothing(ledger):
    ledger.wait(0, 0.01)
    before = time.thread_time()
    ledger.wait(0, 1.0)
    assert time.thread_time() - before < 0.1


def test_a_change_that_is_no_entry_is_no_news(ledger, place):
    timer = threading.Timer(0.05, lambda: Ledger.open(place).claim_lease("rack-1", "b", 5))
    timer.start()
    assert ledger.wait(0, 0.3) == 0
    timer.join()


def test_latest_of_several_nodes_is_what_it_is_of_each(ledger):
    outcomes = [Outcome("c", f"a/n{n}", f"n{n}", "pass", evidence_at=AT) for n in range(700)]
    ledger.record(SuiteRun("r", AT), outcomes)
    some = [f"n{n}" for n in range(0, 700, 2)]
    assert {one.outcome.node for one in ledger.latest(nodes=some)} == set(some)
    assert ledger.latest(nodes=["n3"]) == ledger.latest("n3")
    assert ledger.latest(nodes=[]) == ledger.latest(nodes=["n9999"]) == ledger.latest("n9999") == []


def test_a_lease_is_of_one_holder_until_it_is_let_go(ledger):
    assert ledger.claim_lease("rack-1", "a", 60)
    assert not ledger.claim_lease("rack-1", "b", 60)
    assert ledger.claim_lease("rack-2", "b", 60)
    assert ledger.claim_lease("rack-1", "a", 60), "who holds it renews it"
    assert {name: lease.holder for name, lease in ledger.leases().items()} == {"rack-1": "a", "rack-2": "b"}
    ledger.release("rack-1", "b")
    assert not ledger.claim_lease("rack-1", "b", 60), "only its holder lets go of it"
    ledger.release("rack-1", "a")
    assert ledger.claim_lease("rack-1", "b", 60)


def test_a_lease_ends_with_its_time_and_a_renewal_lengthens_it(ledger):
    assert ledger.claim_lease("rack-1", "a", 0)
    assert ledger.leases() == {}
    assert ledger.claim_lease("rack-1", "b", 60)
    first = ledger.leases()["rack-1"].until_s
    assert abs(first - time.time() - 60) < 30, "seconds since 1970, by a clock of this machine"
    assert ledger.claim_lease("rack-1", "b", 600)
    assert ledger.leases()["rack-1"].until_s > first + 400


def test_the_lease_of_a_killed_holder_goes_to_another_when_it_is_over(ledger, place):
    holder = Forked(hold_a_lease, place, 2.0)
    assert holder.hear() == "held"
    holder.kill()
    until = ledger.leases().get("rack-1")
    if until:
        claimed = ledger.claim_lease("rack-1", "second", 60)
        assert not claimed or time.time() > until.until_s, "not before"
    deadline = time.monotonic() + 60
    while not ledger.claim_lease("rack-1", "second", 60):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert ledger.leases()["rack-1"].holder == "second"


def test_of_two_who_claim_at_once_one_gets_it(place):
    Ledger.open(place).close()
    claimers = [Forked(claim_all, place, name) for name in ("left", "right")]
    at_once(*claimers)
    got = [each.hear() for each in claimers]
    assert sorted(got[0] + got[1]) == sorted(f"rack-{n}" for n in range(30))


def test_one_process_at_a_time_goes_through_an_exclusive_section(place, tmp_path):
    count = tmp_path / "count"
    count.write_text("0")
    Ledger.open(place).close()
    counters = [Forked(count_up, place, count) for _ in range(3)]
    at_once(*counters)
    assert [each.end() for each in counters] == [0, 0, 0]
    assert count.read_text() == "120"


def test_threads_take_turns_as_processes_do(ledger):
    inside, most = [0], [0]

    def go() -> None:
        for _ in range(10):
            with ledger.exclusive_section("deciding"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    threads = [threading.Thread(target=go) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == [1]


def test_a_killed_holder_gives_its_section_back_and_the_ledger_is_open_meanwhile(ledger, place):
    holder = Forked(hold_a_section, place)
    assert holder.hear() == "held"
    with pytest.raises(AssayError, match="its turn"), ledger.exclusive_section("deciding", patience_s=0.2):
        pass
    with ledger.exclusive_section("another"):
        assert ledger.append(entry("a")) == [True], "who holds a section locks nobody else out"
    holder.kill()
    with ledger.exclusive_section("deciding", patience_s=20):
        pass


def test_what_goes_wrong_inside_a_section_ends_it(ledger):
    with pytest.raises(ZeroDivisionError), ledger.exclusive_section("deciding"):
        1 / 0  # noqa: B018
    with ledger.exclusive_section("deciding", patience_s=1):
        pass
