"""A probe relays what its load finds, so that whatever kills it leaves what ran until then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from assay.observe.relayed_load import read_relayed_load

RUN = {"run": {"engine": "numpy 2", "backend": "cpu", "program": "ab", "devices": [{"index": 0}]}}


def unit(seed: int) -> dict[str, object]:
    return {"test": "sort.int32", "seed": seed, "ms": 1.0, "digests": ["aa", "aa"]}


STREAM = [
    {"load": {"before": {"host": {"boot_id": {"value": "b"}}}}},
    {"load": {"begins": "memory", "at": "2026-11-23T08:00:00+00:00"}},
    {"load": {"ends": "memory", "branch": {"errors": {"value": 0}}}},
    {"load": {"begins": "battery", "at": "2026-11-23T08:01:00+00:00"}},
    RUN,
    *(unit(seed) for seed in range(5)),
]


def test_a_probe_that_is_killed_leaves_the_units_that_it_had_computed(tmp_path: Path) -> None:
    tool = tmp_path / "assay-load"
    lines = [json.dumps(line) for line in (RUN, unit(0), unit(1))]
    tool.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + "exec sleep 600\n")
    tool.chmod(0o755)
    command = [sys.executable, "-m", "assay.node.probe", "--active", "battery", "--seconds", "60", "--relay"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    probe = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True)
    assert probe.stdout is not None
    output = b""
    while b'"seed": 1' not in output:
        line = probe.stdout.readline()
        assert line, output
        output += line
    os.killpg(probe.pid, signal.SIGKILL)
    found = read_relayed_load(output + probe.stdout.read())
    probe.wait()
    active = found.build_active("a customer came")
    assert (found.document, sorted(active)) == (b"", ["battery"])
    assert active["battery"]["units"]["value"] == {"sort.int32": {"0": "aa", "1": "aa"}}
    assert active["battery"]["ended"] == {"failed": "killed after 2 units; a customer came"}
    assert "boot_id" in found.before["host"]


def test_a_part_that_ended_is_whole_and_the_one_that_was_cut_short_says_so() -> None:
    text = "\n".join(map(json.dumps, STREAM))
    active = read_relayed_load(text.encode()).build_active("a customer came")
    assert active["memory"] == {"errors": {"value": 0}}
    assert active["battery"]["ended"] == {"failed": "killed after 5 units; a customer came"}
    tool_without_units = [*STREAM[:1], {"load": {"begins": "gpu_burn", "at": "2026-11-23T08:01:00+00:00"}}]
    cut = read_relayed_load("\n".join(map(json.dumps, tool_without_units)).encode())
    assert cut.build_active("a customer came") == {"gpu_burn": {"failed": "killed: a customer came"}}


def test_a_kill_that_reaches_the_parts_reader_before_the_probe_loses_no_unit() -> None:
    # Slurm kills the processes of a step one by one: a probe on a busy node can still tell that its reader died.
    died = {"failed": "the reader died (SIGKILL)"}
    stream = [*STREAM, {"load": {"ends": "battery", "branch": died}}]
    relayed = read_relayed_load("\n".join(map(json.dumps, stream)).encode())
    battery = relayed.build_active("a customer came")["battery"]
    assert len(battery["units"]["value"]["sort.int32"]) == 5
    assert battery["ended"] == {"failed": "killed after 5 units; the reader died (SIGKILL)"}
    answer = {"battery": died, "memory": {"errors": {"value": 0}}, "gpu_burn": died}
    restored = relayed.restore_lost(answer)
    assert restored == {**answer, "battery": battery}, "a reader that died by itself, as where memory ran out"


def test_a_part_that_failed_before_its_first_unit_keeps_its_own_reason() -> None:
    absent = {"absent": "assay-load is not installed"}
    for leaf in (absent, {"failed": "no answer within 60 s (state D in nfs)"}):
        stream = [*STREAM[:4], {"load": {"ends": "battery", "branch": leaf}}]
        relayed = read_relayed_load("\n".join(map(json.dumps, stream)).encode())
        assert relayed.build_active("a customer came")["battery"] == leaf


@given(st.integers(min_value=0))
def test_wherever_the_kill_comes_no_unit_appears_that_was_not_told_whole(cut: int) -> None:
    whole = "".join(json.dumps(line) + "\n" for line in STREAM).encode()
    kept = whole[: cut % (len(whole) + 1)]
    active = read_relayed_load(kept).build_active("killed")
    told = kept.count(b'"digests": ["aa", "aa"]}')
    units = active.get("battery", {}).get("units", {}).get("value", {})
    assert sum(map(len, units.values())) == (told if "run" in kept.decode() and units else 0)
