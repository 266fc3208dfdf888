"""The lab's shell behaves like ssh: unreachable, silent, or a command that sees only its node."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.lab.virtual_node_state import VirtualNodeState


def test_a_node_that_is_off_cannot_be_reached(node: Any) -> None:
    node.change(lambda state: state["power"].update(state="Off"))
    done = node.run("python3", "-m", "assay.node.probe")
    assert done.returncode == 255
    assert done.stderr == f"ssh: connect to host {node.name} port 22: No route to host\n"
    assert done.stdout == ""


def test_a_node_that_boots_cannot_be_reached_until_it_is_ready(node: Any) -> None:
    ready = node.world.clock().now() + timedelta(hours=1)
    node.change(lambda state: state["boot"].update(ready_at=ready.isoformat()))
    assert node.run("true").returncode == 255
    node.change(lambda state: state["boot"].update(ready_at=(ready - timedelta(hours=2)).isoformat()))
    assert node.run("true").returncode == 0


def test_a_node_that_the_lab_does_not_have_has_no_address(node: Any) -> None:
    node.name = "n9999"
    done = node.run("true")
    assert done.returncode == 255
    assert "Could not resolve hostname n9999" in done.stderr


def test_without_a_command_it_says_how_it_is_used(node: Any) -> None:
    done = node.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("usage: ")


def test_a_probe_that_hangs_never_answers_and_leaves_nothing_when_killed(node: Any) -> None:
    node.change(lambda state: state["fails"].update(probe_hangs=True))
    with pytest.raises(subprocess.TimeoutExpired):
        node.run("python3", "-m", "assay.node.probe", timeout_s=1)


def test_the_command_is_run_as_it_is_and_its_exit_code_comes_back(node: Any) -> None:
    assert node.run("sh", "-c", "echo $0 $1; exit 7", "a b", "c").stdout == "a b c\n"
    assert node.run("sh", "-c", "exit 7").returncode == 7


def test_one_word_is_a_command_line_as_with_ssh(node: Any) -> None:
    assert node.run("echo 'one two'  three").stdout == "one two three\n"


def test_a_command_that_the_node_lacks_is_said_as_a_shell_says_it(node: Any) -> None:
    done = node.run("no-such-command")
    assert (done.returncode, done.stderr) == (127, "no-such-command: command not found\n")


def test_the_tools_of_the_lab_come_before_the_machines_own(node: Any) -> None:
    path = node.run("sh", "-c", "command -v fio").stdout.strip()
    assert Path(path).parent == node.world.home / "tools"


def test_without_a_compiler_the_readings_are_replayed_and_it_is_said(node: Any) -> None:
    """PATH holds nothing, so no compiler is found; a lab folder of its own has no library built before."""

    def faults(state: VirtualNodeState) -> None:
        state["gpus"][3]["lost"] = True
        state["gpus"][5]["temperature_c"] = 91

    node.change(faults)
    library, elsewhere = node.world.home / "lib", node.world.home / "lib.away"
    real = node.document()
    library.rename(elsewhere)
    try:
        node.environment = {"PATH": "/nonexistent"}
        done = node.run("python3", "-m", "assay.node.probe")
        host = node.run("python3", "-m", "assay.node.probe", "--areas", "host")
    finally:
        elsewhere.rename(library)
    assert "NVML: replayed, no C compiler found" in done.stderr
    assert json.loads(host.stdout)["probe"].keys() == {"host"}, "what was not asked for is not added"
    gpu = json.loads(done.stdout)["probe"]["gpu"]
    assert gpu["devices"]["0000:61:00.0"] == {"failed": "GPU is lost"}
    assert gpu["devices"]["0000:c3:00.0"]["temperature"]["gpu_c"] == {"value": 91}
    if "value" in real["probe"]["gpu"].get("count", {}):
        assert gpu == real["probe"]["gpu"], "replayed and asked readings are the same"


def test_the_shell_becomes_the_command_so_killing_it_kills_the_probe(node: Any) -> None:
    assert node.run("sh", "-c", "echo $PPID").stdout.strip() == str(os.getpid())
