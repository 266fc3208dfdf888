"""Runs one question of the check as a process with a deadline, and reads what it printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

QUESTION_S = 900
SMI = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]


class QuestionError(Exception):
    """The question has no answer, for the reason that the text says."""


def run_module(module: str, words: Sequence[str], settings: Mapping[str, str], seconds: float = QUESTION_S) -> Any:
    """Run a module of ours; return its JSON lines and how many seconds it took. Raises QuestionError."""
    command = [sys.executable, "-m", module, *words]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, env={**os.environ, **settings}
        )
    except subprocess.TimeoutExpired:
        raise QuestionError(f"{' '.join(command[1:])} did not end within {seconds:g} s") from None
    if done.returncode:
        ending = (done.stderr.strip() or done.stdout.strip())[-300:]
        raise QuestionError(f"{' '.join(command[1:])} ended with exit code {done.returncode}: {ending}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines, time.monotonic() - begun


def run_battery(words: Sequence[str], settings: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Run the battery; return the run's facts, TEST/SEED → digests, and its seconds. Raises QuestionError."""
    lines, seconds = run_module("assay.node.load", ["battery", "--engine", "jax", "--seconds", "600", *words], settings)
    units = {f"{line['test']}/{line['seed']}": line["digests"] for line in lines if "test" in line}
    if not units:
        raise QuestionError("the battery gave no unit")
    return lines[0]["run"], units, seconds


def kill_in_the_middle(words: Sequence[str], settings: Mapping[str, str], patience_s: float = 60) -> dict[str, Any]:
    """Kill a running battery (SIGKILL) after its first unit; return what it held, and when the GPU had forgotten it."""
    command = [sys.executable, "-m", "assay.node.load", "battery", "--engine", "jax", "--seconds", "600", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **settings}
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if b'"test"' in line:
                break
        held = list_processes_on_gpus().get(process.pid)
    finally:
        process.kill()
        process.wait()
    begun = time.monotonic()
    while process.pid in list_processes_on_gpus():
        if time.monotonic() - begun > patience_s:
            raise QuestionError(f"the GPU still has the killed process after {patience_s:g} s")
        time.sleep(0.1)
    return {"held_mib": held, "gone_after_s": round(time.monotonic() - begun, 2)}


def list_processes_on_gpus() -> dict[int, int]:
    """Return PID → MiB of GPU memory, as nvidia-smi says. Raises QuestionError."""
    try:
        done = subprocess.run(SMI, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise QuestionError(f"nvidia-smi: {error}") from None
    rows = [line.split(",") for line in done.stdout.splitlines() if line.count(",") == 1]
    return {int(pid): int(memory) for pid, memory in rows if memory.strip().isdecimal()}
