"""With a real slurmctld: spare work gives way to customers at once, and never begins where they are."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import assay
from assay.model.errors import AssayError
from assay.observe.relayed_load import read_relayed_load
from tests.support.slurm_cluster import needs_slurm, said, until
from tests.support.slurm_room import adapter, by_hand, job, python, submitted

pytestmark = needs_slurm
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun', flush=True); time.sleep(300)"


def test_a_command_gets_its_input_and_its_answer_comes_back(node: str):
    echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); print('why', file=sys.stderr); sys.exit(7)"
    spare = adapter().run_spare(node, python(echo), b"\x00 readings" * 20_000, 60)
    assert spare.exit_code == 7
    assert spare.output == b"\x00 readings" * 20_000
    assert "why" in spare.stderr
    assert spare.preempted_by == ""
    assert adapter().run_spare(node, ["true"], b"", 60).exit_code == 0


def test_our_environment_stays_here(node: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BMC_PASSWORD", "hunter2")
    assert b"hunter2" not in adapter().run_spare(node, ["env"], b"", 60).output


def test_a_customer_gets_the_node_at_once_even_from_what_ignores_being_told(node: str):
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(adapter().run_spare, node, python(DEAF), b"", 300)
        until(lambda: "assay-spare" in said("squeue", "--noheader", f"--nodelist={node}", "--format=%j %T"))
        assert adapter().list_jobs(node) == (), "our own work is no customer's"
        began = time.monotonic()
        number = submitted("llama-405b", node)
        until(lambda: said("squeue", "--noheader", f"--job={number}", "--format=%T") == "RUNNING")
        took = time.monotonic() - began
        spare = going.result(60)

    assert spare.exit_code is None
    assert "llama-405b" in spare.preempted_by
    assert took < 20, "KillWait is 30 s: it was not waited for"


UNITS = """#!/bin/sh
echo '{"run": {"engine": "numpy 2", "backend": "cpu", "devices": [{"index": 0}]}}'
seed=0
while :; do
  echo "{\\"test\\": \\"sort.int32\\", \\"seed\\": $seed, \\"ms\\": 1, \\"digests\\": [\\"aa\\"]}"
  seed=$((seed + 1)); sleep 0.05
done
"""


def test_what_a_load_found_before_a_customer_came_is_kept(node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    arrived = tmp_path / "arrived"
    tool = make_program(tmp_path / "assay-load", UNITS)
    # What srun has passed on, and no more, is sure to be kept: a node with much to do sends its lines late.
    make_program(tmp_path / "srun", f'#!/bin/sh\n{shutil.which("srun")} "$@" | tee {arrived}\n')
    place = [f"PATH={tool.parent}:{os.environ['PATH']}", f"PYTHONPATH={Path(assay.__file__).parents[1]}"]
    command = ["env", *place, sys.executable, "-m", "assay.node.probe", "--active", "battery", "--relay"]
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(adapter().run_spare, node, command, b"", 300)
        until(lambda: arrived.exists() and arrived.read_text().count("sort.int32") > 20)
        job("llama-405b", node)
        spare = going.result(60)
    assert "llama-405b" in spare.preempted_by
    battery = read_relayed_load(spare.output).build_active("a customer came")["battery"]
    assert len(battery["units"]["value"]["sort.int32"]) > 10
    assert "killed after" in battery["ended"]["failed"]


def make_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_nothing_begins_where_a_customer_is(node: str):
    job("gemma", node)
    spare = adapter().run_spare(node, ["touch", "/nonexistent/never"], b"", 60)
    assert (spare.exit_code, spare.output) == (None, b"")
    assert "gemma" in spare.preempted_by


def test_nothing_begins_on_a_closed_node_and_that_is_said(node: str):
    by_hand(node, state="drain", reason="bob has it")
    spare = adapter().run_spare(node, ["true"], b"", 60)
    assert (spare.exit_code, spare.preempted_by) == (None, "")
    assert "bob has it" in spare.stderr


def test_what_does_not_end_is_ended_and_leaves_no_job(node: str):
    spare = adapter().run_spare(node, python(DEAF), b"", 3)
    assert spare.exit_code is None
    assert spare.output == b"begun\n"
    assert "did not end within 3 s" in spare.stderr
    until(lambda: not said("squeue", "--noheader", f"--nodelist={node}"))


def test_what_a_person_cancels_is_neither_passed_nor_failed(node: str):
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(adapter().run_spare, node, ["sleep", "300"], b"", 300)
        until(
            lambda: (found := said("squeue", "--noheader", f"--nodelist={node}", "--format=%A %T")) and "RUN" in found
        )
        said("scancel", said("squeue", "--noheader", f"--nodelist={node}", "--format=%A"))
        assert going.result(60).exit_code is None


def test_without_a_partition_for_it_there_is_no_spare_time(node: str):
    with pytest.raises(AssayError, match="no partition for spare work") as trouble:
        adapter(slurm_spare_partition="").run_spare(node, ["true"], b"", 60)
    assert "slurm_spare_partition" in trouble.value.fix


def test_a_partition_that_is_not_there_is_said_in_slurms_words(take: Callable[[], str]):
    spare = adapter(slurm_spare_partition="nowhere").run_spare(take(), ["true"], b"", 60)
    assert spare.exit_code is None
    assert "partition" in spare.stderr.lower()
