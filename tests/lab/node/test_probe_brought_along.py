"""The probe sent over ssh reads a virtual node as an installed one does, in little memory. `make bench` times it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.observe.evidence_contents import iterate_leaves
from assay.observe.transports.command import build_probe_script

MEMORY_MB = 60


def shell(node: Any) -> list[str]:
    return [sys.executable, "-m", "assay.lab.node.shell", str(node.world.home), node.name]


def brought(node: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*shell(node), "python3", "-I", "-S", "-"], input=build_probe_script(), capture_output=True, check=True
    )


def test_it_reads_what_an_installed_one_reads_and_nothing_lands_on_the_node(node: Any) -> None:
    assert node.run("true").returncode == 0  # what the lab itself writes is there then
    before = sorted(node.folder.rglob("*"))
    found = json.loads(brought(node).stdout)["probe"]
    assert sorted(node.folder.rglob("*")) == before
    installed = node.probe()
    assert [path for path, _ in iterate_leaves(found)] == [path for path, _ in iterate_leaves(installed)]
    assert found["gpu"]["driver"] == installed["gpu"]["driver"]


def test_it_takes_less_memory_than_it_may_with_all_its_children(node: Any, tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(build_probe_script())
    with (tmp_path / "script").open("rb") as given:
        process = subprocess.Popen(
            [*shell(node), "python3", "-I", "-S", "-"],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    looks = []
    while process.poll() is None:
        if text(f"/proc/{process.pid}/cmdline").split("\0")[1:2] == ["-I"]:  # until then it is the lab's shell
            looks.append(sum(map(held_kb, family(process.pid))))
        time.sleep(0.002)
    assert len(looks) > 10
    assert max(looks) / 1024 < MEMORY_MB


def family(pid: int) -> Iterator[int]:
    yield pid
    for child in text(f"/proc/{pid}/task/{pid}/children").split():
        yield from family(int(child))


def held_kb(pid: int) -> int:
    """Return what a process holds, with pages that it shares counted by its share of them."""
    lines = text(f"/proc/{pid}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def test_no_environment_of_ours_is_needed_by_it(node: Any) -> None:
    bare = {"PATH": os.defpath, "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere"}
    command = ["/usr/bin/env", "python3", "-I", "-S", "-", "--root", str(node.folder / "root")]
    done = subprocess.run(command, input=build_probe_script(), capture_output=True, env=bare, check=True)
    assert json.loads(done.stdout)["probe"]["host"]["hostname"] == {"value": node.name}
