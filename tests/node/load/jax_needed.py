"""Tests that need JAX: run in processes of their own, since JAX reads its flags once."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

needs_jax = pytest.mark.skipif(
    not importlib.util.find_spec("jax"),
    reason="JAX is not installed; `make test-slow` installs it, from requirements-load.lock",
)


def run_load(*words: str, cache: Path, code: int = 0) -> list[dict[str, Any]]:
    """Run `assay-load` with JAX on eight devices that a CPU stands for; return its lines."""
    settings = {"ASSAY_LOAD_CACHE": str(cache), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "assay.node.load", *words, "--engine", "jax"],
        capture_output=True, text=True, check=False, env={**os.environ, **settings},
    )  # fmt: skip
    assert done.returncode == code, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
