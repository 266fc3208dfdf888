"""The probe part `battery`: what `assay-load` prints becomes evidence, also where the run was killed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.model.reading import value
from assay.node.load_tools.assay_load import collect_units, parse_load, run_assay_load, run_battery
from assay.node.load_tools.tool_call import LoadOrder
from assay.node.probe.node_access import NodeRoot

RUN = {"run": {"engine": "jax 0.10.2", "backend": "cuda", "program": "ab", "driver": "580", "devices": [{"index": 0}]}}


def unit(seed: int, digests: Sequence[str | None]) -> dict[str, Any]:
    return {"test": "sort.int32", "seed": seed, "ms": 1.0, "digests": digests}


def read(*lines: dict[str, Any], reason: str = "it ended") -> dict[str, Any]:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return parse_load(text, reason, lambda units: {"units": {"value": collect_units(units)}})


def test_devices_that_agree_give_one_digest_and_others_one_each() -> None:
    lines = [RUN, unit(3, ["aa", "aa"]), unit(4, ["aa", "bb"]), unit(5, ["aa", None]), unit(6, [None, None])]
    found = read(*lines, {"end": "done", "units": 4})
    assert found["units"] == {
        "value": {"sort.int32": {"3": "aa", "4": ["aa", "bb"], "5": ["aa", None], "6": [None, None]}}
    }
    assert found["ended"] == {"value": "done"}
    assert found["backend"] == {"value": "cuda"}


def test_units_before_a_kill_stay_and_the_end_says_so() -> None:
    found = read(RUN, unit(3, ["aa", "bb"]), reason="assay-load was killed (SIGKILL)")
    assert found["ended"] == {"failed": "killed after 1 units; assay-load was killed (SIGKILL)"}
    assert found["units"]["value"]["sort.int32"] == {"3": ["aa", "bb"]}


def test_half_a_line_and_warnings_of_libraries_are_no_units() -> None:
    text = json.dumps(RUN) + "\nWARNING: slow\n" + json.dumps(unit(1, ["aa"]))[:20]
    found = parse_load(
        text, "assay-load did not end within 9 s", lambda units: {"units": {"value": collect_units(units)}}
    )
    assert found["units"] == {"value": {}}
    assert found["ended"] == {"failed": "killed after 0 units; assay-load did not end within 9 s"}


def test_a_run_that_did_nothing_is_not_done() -> None:
    assert read(RUN, {"end": "done", "units": 0})["ended"] == {"failed": "no units were computed"}


def test_a_stopped_run_says_by_what() -> None:
    found = read(RUN, unit(1, ["aa"]), {"end": "stopped", "units": 1, "reason": "by SIGTERM"})
    assert found["ended"] == {"failed": "stopped after 1 units; by SIGTERM"}


def test_a_run_that_could_not_start_failed_with_its_words() -> None:
    found = parse_load("", "assay-load ended with exit code 2; it ended with 'no GPU'", lambda units: {})
    assert found == {"failed": "assay-load ended with exit code 2; it ended with 'no GPU'; it did not begin"}


def test_without_the_tool_the_part_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_battery(NodeRoot(), LoadOrder(1))["absent"].startswith("assay-load is not in the PATH")


def test_the_real_tool_on_the_path_gives_evidence_with_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "assay-load"
    more = "--engine numpy --size small --devices 3 --seeds 1 --tests modulo --plant device=1,bit=2"
    tool.write_text(
        f"#!/bin/sh\nPYTHONPATH={os.environ.get('PYTHONPATH', '')} "
        f'exec {sys.executable} -m assay.node.load "$@" {more}\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = run_battery(NodeRoot(), LoadOrder(5, after_unit="6:gone"))
    assert found["ended"] == {"value": "done"}
    by_device = dict(
        zip(
            [one["index"] for one in found["devices"]["value"]],
            found["units"]["value"]["modulo.uint32"]["7"],
            strict=True,
        )
    )
    assert by_device[0] == by_device[2] != by_device[1], "each run has another order of the devices"


def test_a_run_that_hangs_is_ended_and_its_units_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "assay-load"
    lines = [json.dumps(RUN), json.dumps(unit(3, ["aa", "bb"]))]
    tool.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + "exec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    started = partial(run_assay_load, NodeRoot(), [], LoadOrder(1), grace_s=0)
    found = started(read=lambda units: {"units": value(collect_units(units))})
    assert found["ended"] == {"failed": "killed after 1 units; assay-load did not end within 1 s"}
    assert found["units"]["value"]["sort.int32"] == {"3": ["aa", "bb"]}
