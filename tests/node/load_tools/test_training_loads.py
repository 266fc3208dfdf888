"""Training as a load: the shipped workloads by the real tool, and a site's own by its declaration."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.model.specs.node.load_tools import LoadToolSettings
from assay.node.load_tools.assay_load import read_steps, run_training
from assay.node.load_tools.site_commands import parse_steps, run_site_training
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings
from assay.node.probe.node_access import NodeRoot

MEGATRON = {
    "step": {"pattern": r"iteration\s+(\d+)/"},
    "loss": {"pattern": r"lm loss: (\S+)"},
    "tokens_per_s": {"pattern": r"tokens/sec: ([\d,.]+)"},
}
LOG = """\
 [2026-11-02 10:00:00] iteration        1/      50 | lm loss: 1.083E+01 | tokens/sec: 11,250.5 |
loading shard 7 of 8
 [2026-11-02 10:00:09] iteration        2/      50 | lm loss: 1.021E+01 | tokens/sec: 12,250.5 |
"""


def test_the_real_tool_trains_and_a_planted_fault_shows_from_its_step_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "assay-load"
    more = "--engine numpy --devices 3 --steps 3 --plant device=1,bit=28,from=1"
    path = os.environ.get("PYTHONPATH", "")
    tool.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m assay.node.load "$@" {more}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = run_training("gpt", NodeRoot(), LoadOrder(30))
    units = found["units"]["value"]["train.gpt"]
    assert isinstance(units["0.0"], str)
    assert [len(set(units[step])) for step in ("0.1", "0.2")] == [2, 2]
    assert (found["ended"], found["steps"]) == ({"value": "done"}, {"value": 3})
    assert len(found["loss"]["value"]) == len(found["tokens_per_s"]["value"]) == 3


def test_a_loss_that_is_no_number_failed() -> None:
    step = {"test": "train.gpt", "seed": 0, "step": 4, "digests": ["aa"], "loss": [None], "tokens": 8, "device_ms": [2]}
    found = read_steps([step])
    assert found["loss"] == {"failed": "step 4 has a loss that is no number: [None]"}
    assert found["tokens_per_s"] == {"value": [4000.0]}
    assert found["loss_bits"] == {"value": {"train.gpt": {"0.4": [None]}}}


def test_the_bits_of_a_loss_are_those_of_its_float32() -> None:
    step = {"test": "train.gpt", "seed": 0, "step": 4, "digests": ["aa"], "loss": [0.5, 3.4584], "device_ms": [2]}
    assert read_steps([step])["loss_bits"] == {"value": {"train.gpt": {"0.4": ["3f000000", "405d566d"]}}}


def test_without_a_step_nothing_is_known() -> None:
    assert read_steps([])["steps"] == {"failed": "no step was computed"}


def test_a_log_is_read_by_patterns() -> None:
    found = parse_steps(LOG, "", MEGATRON)
    assert len(found.pop("program")["value"]) == 64
    assert found == {
        "ended": {"value": "done"},
        "steps": {"value": 2},
        "loss": {"value": 10.21},
        "losses": {"value": {"1": 10.83, "2": 10.21}},
        "wrong_losses": {"value": 0},
        "tokens_per_s": {"value": 11750.5},
        "step_ms": {"unsupported": "load_tools.training declares no step_ms"},
        "digests": {"unsupported": "load_tools.training declares no digest"},
    }


def test_json_lines_are_read_by_paths_and_may_tell_digests() -> None:
    where = {"step": {"json": "step"}, "loss": {"json": "metrics.loss"}, "digest": {"json": "state"}}
    text = 'rank0: {"step": 7, "metrics": {"loss": 2.5}, "state": "9f3a01bc"}\n{"step": null}\n{"metrics": 3}\n'
    found = parse_steps(text, "", where)
    assert found["digests"] == {"value": {"7": "9f3a01bc"}}
    assert found["loss"] == {"value": 2.5}
    assert found["tokens_per_s"] == {"unsupported": "load_tools.training declares no tokens_per_s"}


def test_what_decides_about_digests_decides_about_the_program() -> None:
    programs = {
        parse_steps(LOG, "", {**MEGATRON, **more})["program"]["value"]
        for more in ({}, {"deadline_s": 9}, {"command": ["a"]}, {"command": ["b"]}, {"digest": {"json": "state"}})
    }
    assert len(programs) == 4, "a deadline decides about no digest"


@pytest.mark.parametrize(
    ("states", "says"),
    [(["9f3a01bc", "9f3a01bd"], "step 7 tells two digests: 9f3a01bc and 9f3a01bd"), (["state"], "not 8 to 64 hex"),
     ([], "no step tells its digest")],
)  # fmt: skip
def test_digests_that_cannot_be_compared_failed(states: list[str], says: str) -> None:
    where = {"step": {"json": "step"}, "loss": {"json": "loss"}, "digest": {"json": "state"}}
    text = "".join(json.dumps({"step": 7, "state": state}) + "\n" for state in states)
    assert says in parse_steps(text + '{"step": 8}\n', "", where)["digests"]["failed"]


@pytest.mark.parametrize("loss", ["nan", "inf", "-", "N/A"])
def test_a_site_loss_that_is_no_number_failed_even_if_later_ones_are(loss: str) -> None:
    text = f"iteration 1/9 | lm loss: {loss}\niteration 2/9 | lm loss: 3.0\n"
    assert parse_steps(text, "", MEGATRON)["loss"] == {"failed": "the loss of step 1 is no number"}


def test_too_few_steps_or_a_bad_end_is_no_done() -> None:
    assert parse_steps(LOG, "", {**MEGATRON, "least_steps": 50})["ended"] == {
        "failed": "2 steps were found in the output, and 50 are needed"
    }
    assert parse_steps("", "", MEGATRON)["ended"] == {"failed": "0 steps were found in the output, and 1 are needed"}


def order(**declared: Any) -> LoadOrder:
    settings = LoadToolSettings.model_validate({"training": {"deadline_s": 5, **MEGATRON, **declared}})
    return LoadOrder(1, site=SiteSettings.parse(json.dumps(settings.as_json())))


def test_a_site_command_runs_as_declared_and_its_exit_code_counts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    good = run_site_training(NodeRoot(), order(command=["cat", str(tmp_path / "log")]))
    assert good["ended"] == {"value": "done"}
    bad = run_site_training(NodeRoot(), order(command=["sh", "-c", "echo iteration 1/2 lm loss: 3; exit 7"]))
    assert bad["ended"] == {"failed": "1 steps, then: sh ended with exit code 7"}


def test_a_site_command_that_hangs_is_ended_at_its_deadline_and_its_steps_stay() -> None:
    hung = "echo iteration 1/2 lm loss: 3; exec sleep 60"
    found = run_site_training(NodeRoot(), order(command=["sh", "-c", hung], deadline_s=1))
    assert found["ended"] == {"failed": "1 steps, then: sh did not end within 1 s"}
    assert found["steps"] == {"value": 1}


def test_without_a_declaration_the_part_is_absent() -> None:
    assert "declares no training" in run_site_training(NodeRoot(), LoadOrder(1))["absent"]


@pytest.mark.parametrize(
    ("field", "says"),
    [({}, "json or pattern"), ({"json": "a", "pattern": "(a)"}, "json or pattern"), ({"pattern": "a"}, "0 groups"),
     ({"pattern": "((a)"}, "pattern"), ({"json": "a..b"}, "pattern")],
)  # fmt: skip
def test_a_field_that_cannot_be_read_is_refused(field: dict[str, str], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        order(command=["true"], loss=field)
