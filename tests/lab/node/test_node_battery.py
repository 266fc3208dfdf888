"""The battery on a virtual node: the real one, computed for each GPU, with the faults that were injected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from assay.lab.faults.injection import inject_fault
from assay.model.evidence import EvidenceDocument
from assay.validate.active.golden import learn_golden, read_golden_run
from assay.validate.active.run_verdict import RunVerdict, judge_run
from assay.validate.active.training import compare_training, read_training_run
from assay.validate.active.unit_results import read_load_run


def verdict_of(node: Any, part: str = "battery") -> RunVerdict:
    return judge_run(read_load_run(node.document("--active", part)["active"][part]))


def test_the_gpus_of_a_healthy_node_agree(node: Any) -> None:
    verdict = verdict_of(node)
    state = node.world.load(node.name)
    assert sorted(device.uuid for device in verdict.run.devices) == sorted(gpu["uuid"] for gpu in state["gpus"])
    assert {device.kind for device in verdict.run.devices} == {"NVIDIA H100 80GB HBM3"}
    assert (verdict.run.backend, verdict.run.driver, verdict.run.cut_short) == ("cuda", state["driver"], "")
    assert len(verdict.run.computed) >= 60
    assert all(vote.is_told and not vote.wrong for vote in verdict.votes)


@pytest.mark.parametrize("kind", ["permanent", "burst", "heat"])
def test_a_gpu_that_computes_wrong_is_named_and_no_other(node: Any, kind: str) -> None:
    inject_fault(node.world, "gpu.computes-wrong", node.name, {"gpu": 5, "kind": kind})
    verdict = verdict_of(node)
    assert [one.index for place, one in enumerate(verdict.run.devices) if verdict.find_wrong_units(place)] == [5]


def test_a_gpu_whose_sending_side_spoils_a_bit_is_named_and_its_receivers_pass(node: Any) -> None:
    inject_fault(node.world, "gpu.computes-wrong", node.name, {"gpu": 5, "kind": "flip", "side": "send"})
    verdict = verdict_of(node)
    places = {device.index: place for place, device in enumerate(verdict.run.devices)}
    assert [index for index, place in places.items() if verdict.find_wrong_units(place)] == [5]
    assert not verdict.suspicions
    assert not any(verdict.find_doubt(place) for index, place in places.items() if index != 5)


def test_a_gpu_that_hangs_ends_the_run_and_is_silent_in_its_last_unit(node: Any) -> None:
    inject_fault(node.world, "gpu.hangs", node.name, {"gpu": 2, "units": 20})
    verdict = verdict_of(node)
    assert verdict.run.cut_short.startswith("stopped after 21 units; device 2 gave nothing")
    assert {verdict.run.devices[place].index: units for place, units in verdict.silent_units.items()} == {2: 1}


@pytest.mark.slow
def test_a_gpu_that_gives_nothing_is_silent_and_not_named(node: Any) -> None:
    inject_fault(node.world, "gpu.gives-nothing", node.name, {"gpu": 7, "units": 10})
    verdict = verdict_of(node)
    silent = {verdict.run.devices[place].index: units for place, units in verdict.silent_units.items()}
    assert silent == {7: len(verdict.run.computed) - 10}
    assert not any(verdict.find_wrong_units(place) for place in range(8))


@pytest.mark.slow
def test_a_gpu_that_computes_slowly_takes_longer_than_its_peers(node: Any) -> None:
    inject_fault(node.world, "gpu.computes-slowly", node.name, {"gpu": 3, "factor": 4.0})
    run = verdict_of(node).run
    times = {device.index: ms for device, ms in zip(run.devices, run.busy_ms, strict=True)}
    assert {index: ms / times[0] for index, ms in times.items() if index} == {**dict.fromkeys(range(1, 8), 1), 3: 4}


@pytest.mark.slow
def test_a_lost_gpu_takes_no_part(node: Any) -> None:
    node.change(lambda state: state["gpus"][0].update(lost=True))
    assert len(verdict_of(node).run.devices) == 7


@pytest.mark.slow
def test_a_gpu_that_trains_wrong_is_named_and_its_peers_train_alike(node: Any) -> None:
    inject_fault(node.world, "gpu.computes-wrong", node.name, {"gpu": 5, "kind": "flip", "bit": 28})
    inject_fault(node.world, "gpu.computes-wrong", node.name, {"gpu": 2, "test": "gemm"})  # no test of training
    verdict = verdict_of(node, "training")
    assert verdict.run.cut_short == ""
    assert len(verdict.run.computed) == 24
    assert [one.index for place, one in enumerate(verdict.run.devices) if verdict.find_wrong_units(place)] == [5]


@pytest.mark.slow
def test_a_gpu_that_trains_wrong_is_found_by_the_golden_run_of_two_healthy_visits(node: Any) -> None:
    def visit() -> EvidenceDocument:
        return EvidenceDocument(node.name, datetime.now(UTC), node.document("--active", "training"))

    _, golden = learn_golden({name: read_golden_run(visit(), "training") for name in ("n1", "n2")})
    inject_fault(node.world, "gpu.computes-wrong", node.name, {"gpu": 5, "kind": "flip", "bit": 28})
    verdict = compare_training(read_training_run(visit().channels["active"]["training"]), golden)
    assert (verdict.began, verdict.steps) == ((5,), 21)


def test_training_that_needs_several_devices_says_that_the_lab_cannot(node: Any) -> None:
    reading = node.document("--active", "training_data_parallel")["active"]["training_data_parallel"]
    assert "data-parallel cannot run here: numpy has one device" in reading["failed"]


def test_without_numpy_the_lab_makes_results_up_and_says_so(node: Any) -> None:
    inject_fault(node.world, "gpu.computes-wrong", node.name, {"gpu": 5})
    for words in (["battery"], ["train", "gpt"]):
        hidden = (
            "import sys; import assay.lab.tools.assay_load as tool;"
            f"sys.argv = ['assay-load', *{words}]; tool.find_spec = lambda name: None; tool.main()"
        )
        done = node.run("python3", "-c", hidden)
        assert done.returncode == 0, done.stderr
        assert '"engine": "made up"' in done.stdout
        assert '"runtime": "lab without numpy"' in done.stdout
