"""The lab and `assay doctor` say what a missing tool would add, and what the lab does not have at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.declare.loader import load_fleet
from assay.lab import optional_parts
from assay.lab.optional_parts import list_parts
from assay.lab.world import LabWorld
from tests.support.places import ROOT

doctor_app = load_verb("doctor")


def test_a_machine_without_tools_says_what_each_would_add(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(optional_parts, "find_spec", lambda _: None)
    fixes = {part.name: part.fix for part in list_parts(load_fleet(ROOT), LabWorld(tmp_path))}
    assert fixes.pop("Fabric") == "", "it needs no tool"
    assert {name: text.split()[-1] for name, text in fixes.items()} == {
        "NVML": "clang", "Battery and training": "'assay-fleet[load]'",
    }  # fmt: skip
    said = CliRunner().invoke(doctor_app, ["--fleet", str(ROOT)]).stdout
    assert said.count("only virtual in the lab: ") == 2
    assert "→ install a C compiler: cc, gcc, clang" in said


def test_a_compiler_that_does_not_work_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert "replayed" in str(
        next(part for part in list_parts(load_fleet(ROOT), LabWorld(tmp_path)) if part.name == "NVML")
    )


def test_what_cannot_be_rehearsed_is_named() -> None:
    fleet = load_fleet(ROOT)
    rack: Any = SimpleNamespace(name="rack-07-nvlink", nvlink=object())
    parts = [str(part) for part in list_parts(replace(fleet, designs={"rack-07-nvlink": rack}))]
    assert "NVLink domain: rack-07-nvlink is not rehearsed: the lab cables InfiniBand only" in parts
