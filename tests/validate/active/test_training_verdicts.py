"""Training is compared with golden runs bit by bit, and the first wrong number says with which GPU it began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from assay.model.specs.golden_digests import GoldenDigests
from assay.model.timestamps import parse_time
from assay.validate.active.golden import find_golden, learn_golden, pack_digests, read_golden_run
from assay.validate.active.training import (
    TrainingRun,
    TrainingVerdict,
    compare_training,
    is_golden_step,
    list_wrong_losses,
    read_training_run,
)
from tests.validate.active.battery_runs import make_branch

RANKS, STEPS = 8, 30
AT = parse_time("2026-11-23T10:00:00+00:00")
NAMES = {rank: f"gpu{rank}" for rank in range(RANKS)}
Change = Callable[[dict[str, dict[str, Any]]], None]


def make_training(change: Change | None = None, **said: Any) -> dict[str, Any]:
    """Return a branch of data-parallel training: one state, and gradients and losses of each rank."""
    series: dict[str, dict[str, Any]] = {"units": {}, "own": {}, "loss_bits": {}}
    for step in range(STEPS):
        series["units"][f"0.{step}"] = f"{step:08x}"
        for number, name in enumerate(("own", "loss_bits"), 1):
            series[name][f"0.{step}"] = [f"{number}{rank}{step:06x}" for rank in range(RANKS)]
    if change:
        change(series)
    beside = {name: value({"train.data-parallel": series[name]}) for name in ("own", "loss_bits")}
    return make_branch({"train.data-parallel": series["units"]}, said={**beside, **said})


def make_run(change: Change | None = None) -> TrainingRun:
    return read_training_run(make_training(change))


def evidence(branch: dict[str, Any], part: str = "training_data_parallel") -> EvidenceDocument:
    return EvidenceDocument("n1", AT, {"active": {part: branch}})


@pytest.fixture(scope="module")
def golden() -> dict[tuple[str, str], str]:
    runs = {node: read_golden_run(evidence(make_training()), "training_data_parallel") for node in ("n1", "n2")}
    return learn_golden(runs)[1]


def compare(golden: dict[tuple[str, str], str], change: Change | None = None) -> TrainingVerdict:
    return compare_training(make_run(change), golden)


def test_a_run_that_is_golden_in_every_bit_differs_nowhere(golden: dict[tuple[str, str], str]) -> None:
    verdict = compare(golden)
    assert (verdict.steps, verdict.wrong, verdict.first) == (21, 0, None)
    assert verdict.describe_untold(NAMES) == ""


@given(rank=st.integers(0, RANKS - 1), step=st.integers(0, 20), name=st.sampled_from(["own", "loss_bits"]))
def test_whoever_gave_a_wrong_number_to_the_others_is_named(rank: int, step: int, name: str) -> None:
    def spoil(series: dict[str, dict[str, Any]]) -> None:
        series[name][f"0.{step}"][rank] = "ffffffff"
        series["units"] |= {f"0.{later}": "eeeeeeee" for later in range(step, STEPS)}
        later = {f"0.{later}": ["dddddddd"] * RANKS for later in range(step + 1, STEPS)}
        series["own"] |= later
        series["loss_bits"] |= later

    runs = {node: read_golden_run(evidence(make_training()), "training_data_parallel") for node in ("n1", "n2")}
    verdict = compare(learn_golden(runs)[1], spoil)
    assert (verdict.began, verdict.wrong) == ((rank,), 21 - step)
    assert verdict.first
    what = {"own": "gradients", "loss_bits": "loss"}[name]
    start = f"train.data-parallel, seed 0, step {step}: {what} of gpu{rank} (ffffffff, not "
    assert verdict.first.describe(NAMES).startswith(start)


def test_where_all_differ_at_once_nobody_is_named(golden: dict[tuple[str, str], str]) -> None:
    def spoil(series: dict[str, dict[str, Any]]) -> None:
        series["units"]["0.4"] = "ffffffff"

    verdict = compare(golden, spoil)
    assert verdict.began == ()
    assert "step 4: state of gpu0, gpu1" in verdict.describe_untold(NAMES)
    assert "8 ranks of 8: a cause that they share" in verdict.describe_untold(NAMES)


def test_a_later_golden_step_vouches_for_those_between(golden: dict[tuple[str, str], str]) -> None:
    assert [step for step in range(1200) if is_golden_step(f"0.{step}")] == [
        *range(20), *range(20, 100, 10), *range(100, 1000, 100), 1000,
    ]  # fmt: skip
    assert ("train.data-parallel", "0.20") in golden
    assert ("train.data-parallel", "0.21") not in golden


def test_gradients_of_each_rank_are_golden_of_their_own(golden: dict[tuple[str, str], str]) -> None:
    assert {test for test, _ in golden} == {
        "train.data-parallel",
        *(f"train.data-parallel.{name}.{rank}" for name in ("own", "loss") for rank in range(RANKS)),
    }


def test_a_silent_gpu_is_not_called_wrong(golden: dict[tuple[str, str], str]) -> None:
    def fall_silent(series: dict[str, dict[str, Any]]) -> None:
        series["units"]["0.4"] = [None, *["00000004"] * 7]
        for name in ("own", "loss_bits"):
            series[name]["0.4"][0] = None

    assert compare(golden, fall_silent).wrong == 0
    assert list(list_wrong_losses(make_run(fall_silent), alike=False)) == []


def test_a_loss_that_is_no_number_is_told_with_its_rank(golden: dict[tuple[str, str], str]) -> None:
    def lose(series: dict[str, dict[str, Any]]) -> None:
        series["loss_bits"]["0.4"][5] = None

    assert compare(golden, lose).began == (5,)
    [(unit, ranks)] = list_wrong_losses(make_run(lose), alike=False)
    assert (unit.seed, ranks) == ("0.4", (5,))


@pytest.mark.parametrize(
    ("losses", "wrong"),
    [(["aaaaaaaa"] * 8, ()), (["aaaaaaaa"] * 7 + ["bbbbbbbb"], (7,)),
     (["aaaaaaaa"] * 4 + ["bbbbbbbb"] * 4, tuple(range(8)))],
)  # fmt: skip
def test_losses_on_the_same_batch_must_be_alike(losses: list[str], wrong: tuple[int, ...]) -> None:
    def put(series: dict[str, dict[str, Any]]) -> None:
        series["loss_bits"] = {"0.4": losses}

    assert [ranks for _, ranks in list_wrong_losses(make_run(put), alike=True)] == ([wrong] if wrong else [])


def test_nodes_whose_gradients_differ_are_no_ground_for_golden_digests() -> None:
    def spoil(series: dict[str, dict[str, Any]]) -> None:
        series["own"]["0.4"][5] = "ffffffff"

    runs = {
        node: read_golden_run(evidence(make_training(change)), "training_data_parallel")
        for node, change in (("n1", None), ("n2", spoil))
    }
    with pytest.raises(AssayError, match=r"first in train\.data-parallel\.own\.5, seed 0\.4: 15000004 and ffffffff"):
        learn_golden(runs)


def test_golden_steps_read_back_from_a_spec(golden: dict[tuple[str, str], str]) -> None:
    packed = pack_digests({("train.x", f"0.{step}"): f"{step:08x}" for step in (*range(20), 20, 30)})
    assert {test: list(runs) for test, runs in packed.items()} == {"train.x": ["0.0", "0.30"]}
    head = {"kind": "GoldenDigests", "name": "x", "owner": "us", "sources": ["us"], "nodes": ["n1", "n2"]}
    key = {"gpu": "H100", "driver": "1", "engine": "jax", "backend": "cuda", "runtime": "", "program": "abc"}
    spec = GoldenDigests.model_validate({**head, "computed_by": key, "digests": packed})
    assert dict(spec.list_digests())["train.x", "0.19"] == "00000013"


def site_evidence(digest: str = "9f3a01bc", **said: Any) -> EvidenceDocument:
    branch = {
        "program": value("ab" * 32), "ended": value("done"), "digests": value({"1": "00000001", "2": digest}),
        "losses": value({"1": 10.5, "2": 10.25}), **said,
    }  # fmt: skip
    gpus = {
        f"0000:{number:02x}:00.0": {"index": value(number), "uuid": value(f"GPU-{number}"), "name": value("H100")}
        for number in range(8)
    }
    gpu = {"driver": value("580.1"), "cuda": value("13.0"), "devices": gpus}
    return EvidenceDocument("n1", AT, {"active": {"site_training": branch}, "probe": {"gpu": gpu}})


def test_a_site_training_has_golden_digests_and_losses_for_its_gpu_driver_and_declaration() -> None:
    runs = {node: read_golden_run(site_evidence(), "site_training") for node in ("n1", "n2")}
    key, digests = learn_golden(runs)
    assert (key.gpu, key.driver, key.engine, key.program) == ("H100", "580.1", "site", "ab" * 32)
    assert digests["train.site", "0.2"] == "9f3a01bc"
    assert digests["train.site.loss", "0.2"] == "4024800000000000"
    other = read_golden_run(site_evidence(program=value("cd" * 32)), "site_training")
    golden = GoldenDigests.model_construct(computed_by=key, digests={"train.site": {"0.1": ["00000001"]}})
    assert find_golden(runs["n1"], [golden])[1] == ""
    assert "there are no golden digests" in find_golden(other, [golden])[1]
