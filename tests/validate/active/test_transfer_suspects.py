"""What changed between GPUs: whoever spoils it is among those named, and nobody else is named guilty."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from assay.validate.active.run_verdict import judge_run
from assay.validate.active.transfer_suspects import (
    HOST,
    SWITCH,
    Suspicion,
    Transfer,
    describe_parts,
    find_suspects,
    read_roles,
)
from tests.validate.active.battery_runs import H100, make_run

Spoils = Callable[[str, Transfer], bool]
GOOD, BAD = "aaaaaaaa", "bbbbbbbb"


def list_tests(count: int) -> list[str]:
    copies = [f"copy.peer.{distance}" for distance in range(1, count)]
    by_sender = ("all_gather", "all_to_all", "broadcast", "all_reduce.without")
    return ["copy.host", *copies, *(f"collective.{name}.{place}" for name in by_sender for place in range(count))]


def observe(count: int, spoils: Spoils, seeds: int = 1) -> list[Transfer]:
    """Return what each GPU received in all tests of some seeds."""
    made = []
    for seed in range(seeds):
        for test in list_tests(count):
            for place in range(count):
                transfer = read_roles(test, place, count)
                assert transfer is not None
                made.append(replace(transfer, is_wrong=spoils(test, transfer), unit=(test, str(seed))))
    return made


def part(*places: int) -> frozenset[int]:
    return frozenset(places)


@pytest.mark.parametrize(("count", "seeds"), [(3, 8), (4, 3), (8, 1), (16, 1)])
def test_a_gpu_that_spoils_all_that_it_sends_or_receives_is_told_by_the_copies_alone(count: int, seeds: int) -> None:
    """Few GPUs have few pairs, so that it takes more seeds until it is no chance."""
    for bad in (0, count // 2, count - 1):
        for spoils in (
            lambda test, each, bad=bad: "peer" in test and each.sender == bad,
            lambda test, each, bad=bad: "peer" in test and each.receiver == bad,
            lambda test, each, bad=bad: "peer" in test and bad in each.through,
        ):
            assert find_suspects(observe(count, spoils, seeds)) == Suspicion(frozenset({part(bad)}))


def test_one_wrong_copy_leaves_sender_receiver_and_the_way_between() -> None:
    once = observe(8, lambda test, each: test == "copy.peer.1" and each.sender == 5)
    assert find_suspects(once) == Suspicion(suspects=frozenset({part(5), part(6), part(5, 6), SWITCH}))


def test_a_way_is_told_when_the_same_pair_fails_again_and_again_and_no_gpu_is_guilty() -> None:
    def spoils(test: str, each: Transfer) -> bool:
        return each.is_direct and each.through == {2, 6}

    told = find_suspects(observe(8, spoils, seeds=4))
    assert told == Suspicion(frozenset({part(2, 6)}))
    assert not told.guilty_devices
    assert describe_parts(told.guilty, {place: f"gpu{place}" for place in range(8)}) == "the way between gpu2 and gpu6"


def test_a_wrong_collective_alone_leaves_all_that_took_part() -> None:
    """Whoever passes a piece on can spoil it: sender and receiver are not the only ones."""
    told = find_suspects(observe(8, lambda test, each: test == "collective.all_gather.5" and each.receiver != 5))
    assert not told.guilty
    assert {part(place) for place in range(8)} < told.suspects


def test_who_spoils_sums_is_told_by_the_sum_that_is_right_without_it() -> None:
    told = find_suspects(
        observe(8, lambda test, each: "without" in test and 3 in each.through and len(each.through) > 1, seeds=6)
    )
    assert told == Suspicion(frozenset({part(3)}))


def test_copies_with_the_host_leave_the_gpu_and_its_way_until_other_copies_decide() -> None:
    host_only = find_suspects(observe(8, lambda test, each: test == "copy.host" and each.receiver == 4))
    assert host_only.suspects == {part(4), part(HOST), part(HOST, 4)}
    both = find_suspects(observe(8, lambda test, each: each.is_direct and each.receiver == 4))
    assert both == Suspicion(frozenset({part(4)}))


def test_two_bad_gpus_are_both_told_and_what_a_sick_gpu_computes_wrong_accuses_nobody_else() -> None:
    two = observe(8, lambda test, each: "peer" in test and (each.sender == 1 or each.receiver == 6))
    assert find_suspects(two).guilty_devices == {1, 6}
    assert find_suspects(two, known={1}).guilty_devices == {6}
    assert find_suspects(two, known={1, 6}) == Suspicion()


@pytest.mark.parametrize("count", [3, 4, 8])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.3, 1.0])
def test_where_a_switch_spoils_what_it_passes_on_no_gpu_is_guilty(count: int, rate: float) -> None:
    for trial in range(30):
        chance = random.Random(f"{count} {rate} {trial}")

        def spoils(test: str, each: Transfer, chance: random.Random = chance) -> bool:
            return HOST not in each.through and len(each.through) > 1 and chance.random() < rate

        told = find_suspects(transfers := observe(count, spoils, seeds=chance.choice([1, 2, 6])))
        assert not told.guilty_devices, (trial, told)
        assert SWITCH in told.suspects or not any(each.is_wrong for each in transfers)


def list_faults(count: int, chance: random.Random) -> Iterator[tuple[frozenset[int], Spoils]]:
    """Yield faults of all kinds, each with the part that has it. Some hit each time, some now and then."""
    bad, other = chance.sample(range(count), 2)
    rate = chance.choice([1.0, 0.5, 0.1])
    relay = chance.sample(range(count), count)

    def passes_on(each: Transfer) -> bool:
        """Whether the piece passes `bad`, in a ring of all devices, before it comes to its receiver."""
        return bad != each.receiver and relay.index(bad) < relay.index(each.receiver)

    kinds: list[tuple[frozenset[int], Spoils]] = [
        (part(bad), lambda test, each: each.sender == bad),
        (part(bad), lambda test, each: each.receiver == bad),
        (part(bad), lambda test, each: bad in each.through),
        (part(bad), lambda test, each: not each.is_direct and bad in each.through and passes_on(each)),
        (part(bad, other), lambda test, each: each.is_direct and each.through == {bad, other}),
        (part(bad, other), lambda test, each: each.sender == bad and each.receiver == other),
        (part(bad, other), lambda test, each: {bad, other} <= each.through),
    ]
    for guilty, spoils in kinds:
        yield guilty, lambda test, each, spoils=spoils: spoils(test, each) and chance.random() < rate


def test_whatever_part_spoils_whatever_it_is_never_another_part_that_is_guilty() -> None:
    told = 0
    for trial in range(40):
        chance = random.Random(trial)
        count = chance.choice([3, 4, 8])
        for guilty, spoils in list_faults(count, chance):
            transfers = observe(count, spoils, seeds=chance.choice([1, 9]))
            found = find_suspects(transfers)
            if any(each.is_wrong for each in transfers):
                assert guilty in found.guilty | found.suspects, (trial, guilty, found)
                assert found.guilty <= {guilty}, (trial, guilty, found)
                told += bool(found.guilty)
    assert told > 100


def judge(spoils: Spoils, count: int = 8, order: tuple[int, ...] = ()) -> tuple[set[str], set[str], list[str]]:
    """Return the guilty GPUs of a run, those that pass, and the doubts."""
    places = order or tuple(range(count))
    units = {"copy.source": {"0": GOOD}}
    for test in list_tests(count):
        given = [read_roles(test, place, count) for place in range(count)]
        units[test] = {"0": [BAD if each and spoils(test, each) else GOOD for each in given]}
    verdict = judge_run(make_run(units, kinds=(H100,) * count))
    names = dict(enumerate(places))
    guilty = {f"gpu{names[place]}" for place in range(count) if verdict.find_wrong_units(place)}
    passes = {f"gpu{names[place]}" for place in range(count) if not verdict.find_doubt(place)} - guilty
    return guilty, passes, [each.undecided for each in verdict.suspicions]


def test_the_sender_of_wrong_copies_is_guilty_and_their_receivers_pass() -> None:
    """The found case: one bit spoilt by the transmit side of gpu5 sent the node to RMA with gpu3 and gpu6 named."""
    assert judge(lambda test, each: each.sender == 5) == ({"gpu5"}, {f"gpu{at}" for at in range(8)} - {"gpu5"}, [])
    six_of_seven = judge(lambda test, each: test != "copy.peer.1" and each.sender == 5)
    assert six_of_seven[0] == {"gpu5"}
    two_of_seven = judge(lambda test, each: test in ("copy.peer.1", "copy.peer.6") and each.sender == 5)
    assert two_of_seven[0] == set(), "what connects all can hit two copies of one sender"


def test_while_two_explanations_are_left_nobody_is_guilty_and_no_suspect_passes() -> None:
    guilty, passes, doubts = judge(lambda test, each: test == "copy.peer.1" and each.sender == 5)
    assert guilty == set()
    assert passes == {"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu7"}
    suspects = "gpu5, gpu6, or the way between gpu5 and gpu6, or what connects all GPUs"
    assert doubts == [f"gpu6 received what is wrong: {suspects} can be guilty"]


def test_all_that_is_sent_is_compared_with_what_is_computed_without_sending() -> None:
    """Eight GPUs that received the same wrong piece agree with each other."""
    _, passes, doubts = judge(lambda test, each: test == "collective.all_gather.5")
    assert passes == set()
    assert "can be guilty" in doubts[0]


def test_a_state_of_shared_training_that_differs_names_no_gpu() -> None:
    units = {"train.data-parallel": {f"0.{step}": [GOOD] * 5 + [BAD] + [GOOD] * 2 for step in range(9)}}
    verdict = judge_run(make_run(units))
    assert not any(verdict.find_wrong_units(place) for place in range(8))
    spoilt = verdict.find_spoilt_units(5)
    assert spoilt is not None
    assert len(spoilt.units) == 9
    assert "gpu5 received what is wrong" in spoilt.describe({place: f"gpu{place}" for place in range(8)})
