"""A change that would break a limit is refused, and the limit is named; one that just fits is not."""

from __future__ import annotations

import pytest

from assay.decide.plan.inputs import BacktestDifference, BacktestReport, FleetFacts

LIFECYCLE = "specs/lifecycle/default.yaml:"


def refused(made) -> list[str]:
    assert all(one.where.startswith(LIFECYCLE) for one in made.refused)
    return [one.limit for one in made.refused]


def recabled(repository, *nodes: str) -> None:
    """Exchange the first two adapters of nodes in the inventory, so that two plugs of each have to move."""
    for name in nodes:
        host = repository.host(name)
        mark = name[-2:]
        low, high = f"9a{int(mark):02x}06", f"9a{int(mark):02x}16"
        swapped = host.replace(low, "LOW").replace(high, low).replace("LOW", high)
        repository.edit("inventory/h100-a.yml", host, swapped)


@pytest.fixture
def without_fabric(repository):
    """The repository without a fabric, so that nodes can go without cables."""
    (repository.root / "specs/fabrics/compute.yaml").unlink()
    for file in ("inventory/h100-a.yml", "inventory/byo-b.yml"):
        repository.edit(file, "    fabric: compute\n", "")
    repository.commit()
    return repository


def gone(repository, *names: str):
    for name in names:
        repository.edit("inventory/h100-a.yml", repository.host(name), "")
    return repository


def test_more_nodes_in_service_cannot_be_removed_at_once_than_may_be_out(without_fabric) -> None:
    made = gone(without_fabric, "n0004", "n0005", "n0009", "n0013", "n0016").plan()
    assert refused(made) == ["limits.pool_percent"]
    assert made.refused[0].why.startswith("pool h100-a: 5 nodes (n0004, n0005, n0009, and 2 more) in service")
    assert made.refused[0].why.endswith("3 of 14 may be out")


def test_as_many_as_may_be_out_can_be_removed(without_fabric) -> None:
    assert refused(gone(without_fabric, "n0004", "n0005", "n0009").plan()) == []


def test_what_is_out_already_leaves_less_room(without_fabric, out_of_service) -> None:
    gone(without_fabric, "n0004", "n0005")
    assert refused(without_fabric.plan(out_of_service("n0014"))) == []
    assert refused(without_fabric.plan(out_of_service("n0014", "n0015"))) == ["limits.pool_percent"]


def test_nodes_that_are_out_of_service_can_be_removed(without_fabric, out_of_service) -> None:
    names = ("n0004", "n0005", "n0009", "n0013")
    assert refused(gone(without_fabric, *names).plan(out_of_service(*names))) == []


def test_a_rack_cannot_lose_more_than_may_be_out_of_it(without_fabric) -> None:
    assert refused(gone(without_fabric, "n0005", "n0006").plan()) == []
    assert refused(gone(without_fabric, "n0007").plan()) == ["limits.rack_concurrent"]


def test_a_pool_cannot_be_given_away_at_once_but_stays_in_its_racks(repository) -> None:
    for name in ("n0005", "n0006", "n0007"):
        repository.edit("inventory/h100-a.yml", host := repository.host(name), f"{host}      pool: h100-b\n")
    assert refused(repository.plan()) == []
    repository.edit("inventory/h100-a.yml", host := repository.host("n0009"), f"{host}      pool: h100-b\n")
    assert refused(repository.plan()) == ["limits.pool_percent"]


def test_a_limit_cannot_be_lowered_beneath_what_is_out(repository, out_of_service) -> None:
    facts = out_of_service("n0005", "n0006", "n0009")
    repository.policy("pool_percent: 25", "pool_percent: 22")
    assert refused(repository.plan(facts)) == []  # 3 of 14 may be
    repository.policy("pool_percent: 22", "pool_percent: 21")
    assert refused(repository.plan(facts)) == ["limits.pool_percent"]


def test_a_rack_s_limit_cannot_be_lowered_beneath_what_is_out(repository, out_of_service) -> None:
    repository.policy("rack_concurrent: 2", "rack_concurrent: 1")
    assert refused(repository.plan(out_of_service("n0005"))) == []
    assert refused(repository.plan(out_of_service("n0005", "n0006"))) == ["limits.rack_concurrent"]


def test_too_much_that_is_out_under_an_old_limit_is_nobody_s_fault(repository, out_of_service) -> None:
    names = [f"n{number:04}" for number in range(3, 10)]
    assert refused(repository.spec("fans: 10", "fans: 9").plan(out_of_service(*names))) == []


def test_a_change_on_which_the_policy_acts_at_once_must_fit_into_the_limits(repository) -> None:
    fault = 'remedy: ticket\n    investigate: "find out who flashed'
    repository.policy("firmware.drift, ", "").edit("specs/faults/hgx.yaml", fault, fault.replace("ticket", "reboot"))
    repository.commit()
    assert refused(repository.firmware("01.05.11", "01.05.12").plan()) == ["limits.pool_percent"]


def hindsight(*names: str, still: bool = True) -> FleetFacts:
    found = tuple(BacktestDifference(name, True, still, "hot", "passes", "triage, when idle", "") for name in names)
    return FleetFacts(backtest=BacktestReport(30, len(names), found=found))


def test_thresholds_that_would_act_on_too_many_at_once_are_refused(repository) -> None:
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 60")
    assert refused(repository.plan(hindsight("n0004", "n0005", "n0009"))) == []
    assert refused(repository.plan(hindsight(*(f"n{n:04}" for n in range(3, 8))))) == ["limits.pool_percent"]
    assert refused(repository.plan(hindsight(*(f"n{n:04}" for n in range(3, 8)), still=False))) == []


def test_thresholds_that_would_open_the_breaker_are_refused(repository) -> None:
    repository.policy("pool_percent: 25", "pool_percent: 40").commit()
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 60")
    assert refused(repository.plan(hindsight("n0004", "n0005", "n0009", "n0013"))) == ["breaker.percent"]
    assert refused(repository.plan(hindsight("n0004", "n0005", "n0009"))) == []


def test_cables_of_too_many_nodes_cannot_be_moved_in_one_merge(repository) -> None:
    recabled(repository, "n0005", "n0006")
    assert refused(repository.plan()) == []
    recabled(repository, "n0007")
    assert refused(repository.plan()) == ["limits.rack_concurrent"]


def test_cables_that_are_laid_unplug_nobody(repository) -> None:
    repository.edit("specs/fabrics/compute.yaml", "n0001..n0020", "n0001..n0008").commit()
    repository.edit("specs/fabrics/compute.yaml", "n0001..n0008", "n0001..n0016")
    made = repository.plan()
    assert {job.what for job in made.cables} == {"lay"}
    assert refused(made) == []


def test_a_state_in_which_nodes_are_cannot_be_taken_away(repository, known) -> None:
    repository.policy("  debug:\n    summary", "  bench:\n    summary")
    repository.policy("triage: [seatrial, debug, rma", "triage: [seatrial, bench, rma")
    repository.policy("  debug: [seatrial", "  bench: [seatrial")
    repository.policy("draining, triage, debug, rma]", "draining, triage, bench, rma]")
    assert refused(repository.plan()) == []
    made = repository.plan(known("n0005", "debug", start="triage"))
    assert refused(made) == ["states"]
    assert made.refused[0].why == "n0005 in state debug, which the policy would no longer have"
