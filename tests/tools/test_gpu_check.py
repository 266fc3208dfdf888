"""`make gpu-check`: refuses a machine without a GPU, and its rehearsal answers what a CPU can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.node.load.jax_needed import needs_jax
from tests.support.places import ROOT


def check(*words: str, out: Path) -> subprocess.CompletedProcess[str]:
    settings = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "ASSAY_LOAD_CACHE": str(out.parent / "cache")}
    command = [sys.executable, "-m", "tools.gpu_check", str(out), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **settings}, cwd=ROOT
    )


def test_without_a_gpu_it_says_what_it_needs(tmp_path: Path) -> None:
    done = check(out=tmp_path / "seen.json")
    assert done.returncode == 2
    assert "needs a machine with an NVIDIA GPU" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "seen.json").exists()


@needs_jax
@pytest.mark.slow(minutes=4)
def test_a_rehearsal_answers_what_a_cpu_can_and_says_what_it_cannot(tmp_path: Path) -> None:
    done = check("--rehearse", "--only", "planted_bit", "training", "kill", out=tmp_path / "seen.json")
    assert done.returncode == 1, done.stderr
    document = json.loads((tmp_path / "seen.json").read_text())
    assert document["run"]["backend"] == "cpu"
    assert document["answers"]["planted_bit"] == {"seen_in": ["gemm.float32.ones/0"]}
    assert document["answers"]["training"]["steps"] == 20
    assert "nvidia-smi" in document["answers"]["kill"]["failed"]
