"""The GPUs of a node vote on each unit: who is outvoted is named, and nobody else. What cannot be told never passes."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import failed, value
from assay.validate.active.run_verdict import RunVerdict, judge_run
from assay.validate.active.unit_results import LoadRun, UnreadableRun, read_load_run
from tests.validate.active.battery_runs import H100, make_branch, make_run

TRAY = ("NVIDIA GB200",) * 4


def named(verdict: RunVerdict) -> set[str]:
    return {
        device.uuid for place, device in enumerate(verdict.run.devices) if verdict.find_wrong_units(place) is not None
    }


def passed(verdict: RunVerdict) -> set[str]:
    every = {device.uuid: place for place, device in enumerate(verdict.run.devices)}
    return {uuid for uuid, place in every.items() if uuid not in named(verdict) and not verdict.find_doubt(place)}


def one_unit(*digests: str | None) -> RunVerdict:
    return judge_run(make_run({"gemm": {"7": list(digests)}}, kinds=(H100,) * len(digests)))


def test_gpus_that_agree_pass(all_right: LoadRun) -> None:
    verdict = judge_run(all_right)
    assert named(verdict) == set()
    assert len(passed(verdict)) == 8


def test_a_gpu_that_is_always_wrong_is_named_although_it_agrees_with_itself() -> None:
    units = {"gemm": {str(seed): ["aaaaaaaa"] * 5 + ["bbbbbbbb"] + ["aaaaaaaa"] * 2 for seed in range(3)}}
    verdict = judge_run(make_run(units))
    assert named(verdict) == {"GPU-5"}
    wrong = verdict.find_wrong_units(5)
    assert wrong is not None
    assert (len(wrong.units), wrong.judged) == (3, 3)
    assert wrong.first.right == (0, 1, 2, 3, 4, 6, 7)
    text = wrong.describe({place: f"gpu{place}" for place in range(8)})
    assert text == (
        "of 3 (100 %); first gemm, seed 0: bbbbbbbb, not aaaaaaaa; outvoted by gpu0, gpu1, gpu2, gpu3, gpu4, gpu6, "
        "gpu7; wrong in gemm 3"
    )


@pytest.mark.parametrize(
    ("digests", "why"),
    [
        (["aaaaaaaa"] * 4 + ["bbbbbbbb"] * 4, "a tie: 4 to 4 of 8 GPUs"),
        ([f"0000000{place}" for place in range(8)], "8 GPUs computed 8 different results"),
        (["aaaaaaaa", "bbbbbbbb"], "2 GPUs of a kind cannot outvote anybody: that takes 3"),
        (["aaaaaaaa", "aaaaaaaa", "bbbbbbbb", None], "no majority: at most 2 of 4 GPUs agree"),
        (["aaaaaaaa"] * 3 + [None] * 5, "no majority: at most 3 of 8 GPUs agree"),
        ([None] * 8, "no GPU computed it"),
    ],
)
def test_without_a_strict_majority_nobody_is_named_and_nobody_passes(digests: list[str | None], why: str) -> None:
    verdict = one_unit(*digests)
    assert named(verdict) == passed(verdict) == set()
    assert verdict.votes[0].undecided.startswith(why)


def test_three_of_the_four_gpus_of_a_tray_outvote_the_fourth_with_a_golden_digest_only() -> None:
    run = make_run({"gemm": {"0": ["aaaaaaaa", "aaaaaaaa", "aaaaaaab", "aaaaaaaa"]}}, kinds=TRAY)
    assert judge_run(run).votes[0].suspects == (0, 1, 2, 3)
    assert named(judge_run(run)) == passed(judge_run(run)) == set()
    assert named(judge_run(run, {("gemm", "0"): "aaaaaaaa"})) == {"GPU-2"}


def test_gpus_of_another_kind_do_not_vote_on_each_other() -> None:
    units = {"gemm": {"0": ["aaaaaaaa"] * 3 + ["bbbbbbbb"] * 3}}
    verdict = judge_run(make_run(units, kinds=("old",) * 3 + ("new",) * 3))
    assert named(verdict) == set()
    assert len(passed(verdict)) == 6


def test_a_silent_gpu_does_not_pass_and_is_not_named() -> None:
    verdict = one_unit(*["aaaaaaaa"] * 7, None)
    assert named(verdict) == set()
    assert verdict.find_doubt(7) == "it gave no result in 1 unit of 1"
    assert dict(verdict.silent_units) == {7: 1}


def test_a_majority_that_differs_from_the_golden_digest_names_nobody() -> None:
    run = make_run({"gemm": {"0": ["aaaaaaaa"] * 7 + ["bbbbbbbb"]}})
    verdict = judge_run(run, {("gemm", "0"): "bbbbbbbb"})
    assert named(verdict) == passed(verdict) == set()
    assert "a cause that they share" in verdict.common_causes[0].undecided


def test_a_golden_digest_decides_a_tie_between_groups() -> None:
    run = make_run({"gemm": {"0": ["aaaaaaaa"] * 4 + ["bbbbbbbb"] * 4}})
    assert named(judge_run(run, {("gemm", "0"): "aaaaaaaa"})) == {"GPU-4", "GPU-5", "GPU-6", "GPU-7"}


def test_a_golden_digest_that_one_gpu_alone_has_decides_nothing() -> None:
    run = make_run({"gemm": {"0": [f"0000000{place}" for place in range(8)]}})
    assert named(judge_run(run, {("gemm", "0"): "00000003"})) == set()


@st.composite
def faulty_runs(draw: st.DrawFn) -> tuple[LoadRun, set[str], dict[tuple[str, str], str]]:
    """A run, the GPUs that were faulty in it, and what is right. The faulty ones are fewer than half."""
    count = draw(st.integers(3, 16))
    faulty = draw(st.sets(st.integers(0, count - 1), max_size=(count - 1) // 2))
    chance = random.Random(draw(st.integers(0, 2**32)))
    kind = {place: draw(st.sampled_from(["always", "sometimes", "silent", "alike"])) for place in faulty}
    truth = {("gemm", str(seed)): f"{chance.getrandbits(32):08x}" for seed in range(draw(st.integers(1, 6)))}

    def compute(place: int, right: str) -> str | None:
        said = kind.get(place, "right")
        if said == "silent":
            return None if chance.random() < 0.5 else right
        if said == "right" or (said == "sometimes" and chance.random() < 0.5):
            return right
        return f"{int(right, 16) ^ (1 if said == 'alike' else chance.randrange(1, 2**32)):08x}"

    units = {seed: [compute(place, right) for place in range(count)] for (_, seed), right in truth.items()}
    return make_run({"gemm": units}, kinds=(H100,) * count), {f"GPU-{place}" for place in faulty}, truth


@given(faulty_runs(), st.booleans())
def test_whatever_is_mixed_no_healthy_gpu_is_named(
    mixed: tuple[LoadRun, set[str], dict[tuple[str, str], str]], has_golden: bool
) -> None:
    run, faulty, truth = mixed
    verdict = judge_run(run, truth if has_golden else None)
    assert named(verdict) <= faulty
    wrong = {
        run.devices[place].uuid
        for unit in run.units
        for place, digest in enumerate(unit.digests)
        if digest is not None and digest != truth[unit.name]
    }
    if all(vote.is_told for vote in verdict.votes):
        assert named(verdict) == wrong, "a majority always wins"
    assert not passed(verdict) & wrong
    silent = {run.devices[place].uuid for unit in run.units for place, one in enumerate(unit.digests) if one is None}
    assert not passed(verdict) & silent, "silence is never a pass"


@given(faulty_runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_devices_changes_nothing(
    mixed: tuple[LoadRun, set[str], dict[tuple[str, str], str]], chance: random.Random
) -> None:
    run, _, _ = mixed
    order = chance.sample(range(len(run.devices)), len(run.devices))
    units = {"gemm": {unit.seed: [unit.digests[place] for place in order] for unit in run.units}}
    devices = [{"index": place, "uuid": f"GPU-{place}", "kind": H100} for place in order]
    permuted = read_load_run(make_branch(units, said={"devices": value(devices)}))
    before, after = judge_run(run), judge_run(permuted)
    assert named(before) == named(after)
    assert passed(before) == passed(after)


@pytest.mark.parametrize(
    ("said", "path", "words"),
    [
        ({"units": failed("assay-load: command not found")}, "units", "command not found"),
        ({"devices": failed("no GPU")}, "devices", "no GPU"),
        ({"devices": value([])}, "units.gemm.0", "not one digest for each of 0 GPUs"),
        ({"devices": value([{"index": 0}])}, "devices", "is no GPU with index"),
        ({"devices": value([{"index": 0, "uuid": "GPU-0", "kind": "x"}] * 8)}, "devices", "one GPU twice"),
        ({"units": value([])}, "units", "is no branch"),
        ({"units": value({"gemm": []})}, "units.gemm", "has no seeds"),
        ({"units": value({"gemm": {"0": ["aaaaaaaa"] * 7}})}, "units.gemm.0", "not one digest for each of 8 GPUs"),
        ({"units": value({"gemm": {"0": "AAAAAAAA"}})}, "units.gemm.0", "not one digest"),
        ({"units": value({"gemm": {"0": [True] * 8}})}, "units.gemm.0", "not one digest"),
    ],
)
def test_what_is_no_run_is_refused_with_its_place(said: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(UnreadableRun) as refusal:
        read_load_run(make_branch({"gemm": {"0": ["aaaaaaaa"] * 8}}, said=said))
    assert refusal.value.path == path
    assert words in refusal.value.reason


def test_a_run_that_was_killed_keeps_its_units_and_says_so() -> None:
    run = make_run({"gemm": {"0": ["aaaaaaaa"] * 8}}, said={"ended": failed("killed after 430 units")})
    assert run.cut_short == "killed after 430 units"
    assert len(run.computed) == 1


KEYS = st.sampled_from(["value", "failed", "gemm", "0", "index", "uuid", "kind"])
NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.sampled_from(["devices", "units", "ended", "engine"]), NONSENSE)
def test_any_nonsense_is_either_a_run_or_refused(place: str, nonsense: Any) -> None:
    branch = make_branch({"gemm": {"0": ["aaaaaaaa"] * 8}}, said={place: nonsense})
    with suppress(UnreadableRun):
        judge_run(read_load_run(branch))
