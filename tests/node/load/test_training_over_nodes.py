"""Training over two nodes, started and judged as a site's own: processes on this machine with names of two hosts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.model.evidence import EvidenceDocument
from assay.model.reading import ReadingTree, value
from assay.model.specs.node.load_tools import LoadToolSettings
from assay.model.timestamps import parse_time
from assay.node.load_tools.site_commands import run_site_training
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings
from assay.node.probe.node_access import NodeRoot
from assay.validate.active.golden import learn_golden, read_golden_run
from assay.validate.active.training import compare_training, read_site_training
from tests.node.load.jax_needed import needs_jax, run_load
from tests.support.reserved_ports import reserve_ports

pytestmark = [pytest.mark.slow, needs_jax]

SRUN = """#!/bin/bash
# As `srun --label --nodelist=n1,n2`: a process on each node, whose lines begin with its number.
set -o pipefail
begin() { SLURMD_NODENAME=$1 "${@:3}" 2>/dev/null | sed -u "s/^/$2: /"; }
nodes=$1; shift
[ "$nodes" = n1,n2 ] && { begin n2 1 "$@" $ON_N2 & }
begin n1 0 "$@"; first=$?
wait; exit $first
"""
FIELDS = {
    "step": {"pattern": r'"step": (\d+)'},
    "loss": {"pattern": r'^0: .*"loss": \[([^],]+)'},
    "digest": {"pattern": r'"digests": \["([0-9a-f]{8})"'},
}
STEPS = 3


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def train(tmp_path: Path, cache: Path, nodes: str = "n1,n2", on_n2: str = "", deadline_s: int = 300) -> ReadingTree:
    """Return the readings of `site_training` on two hosts of two devices. `on_n2`: more words for the second."""
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    (port,) = reserve_ports(1)
    words = ["train", "data-parallel", "--engine", "jax", "--devices", "2", "--steps", str(STEPS)]
    program = [
        sys.executable,
        "-m",
        "assay.node.load",
        *words,
        "--hosts",
        "n1,n2",
        "--coordinator",
        f"127.0.0.1:{port}",
    ]
    declared: Any = {
        "command": [str(tmp_path / "srun"), nodes, *program], "deadline_s": deadline_s, "least_steps": 2 * STEPS,
        **FIELDS,
    }  # fmt: skip
    site = SiteSettings.parse(json.dumps(LoadToolSettings.model_validate({"training": declared}).as_json()))
    environment = {
        "ASSAY_LOAD_CACHE": str(cache), "JAX_PLATFORMS": "cpu", "ON_N2": on_n2,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    return run_site_training(NodeRoot(), LoadOrder(60, environment, site=site))


def document(found: ReadingTree) -> EvidenceDocument:
    gpus = {
        str(number): {"index": value(number), "uuid": value(f"GPU-{number}"), "name": value("H100")}
        for number in range(4)
    }
    gpu = {"driver": value("580.1"), "cuda": value("13.0"), "devices": gpus}
    channels = {"active": {"site_training": {**found, "program": value("ab" * 32)}}, "probe": {"gpu": gpu}}
    return EvidenceDocument("n1", parse_time("2026-11-23T10:00:00+00:00"), channels)  # a port is part of the command


def test_two_hosts_train_as_one_node_and_a_fault_on_the_second_differs_from_the_golden_run(
    tmp_path: Path, cache: Path
) -> None:
    good = train(tmp_path, cache)
    assert (good["ended"], good["steps"]) == (value("done"), value(2 * STEPS)), "both hosts tell each step"
    whole = run_load("train", "data-parallel", "--steps", str(STEPS), "--devices", "4", cache=cache)
    assert good["digests"]["value"] == {str(one["step"]): one["digests"][0] for one in whole if "step" in one}

    golden = learn_golden({node: read_golden_run(document(good), "site_training") for node in ("n1", "n2")})[1]
    assert compare_training(read_site_training(document(good)), golden).first is None
    spoilt = train(tmp_path, cache, on_n2="--plant device=1,bit=29,from=1")
    verdict = compare_training(read_site_training(document(spoilt)), golden)
    assert verdict.first
    assert (verdict.wrong, verdict.first.describe({0: "the run"})[:44]) == (
        2,
        "train.site, seed 0, step 1: state of the run",
    )


def test_a_host_that_does_not_come_is_no_end(tmp_path: Path, cache: Path) -> None:
    found = train(tmp_path, cache, nodes="n1", deadline_s=10)
    assert found["ended"] == {"failed": f"0 steps, then: {tmp_path / 'srun'} did not end within 10 s"}
