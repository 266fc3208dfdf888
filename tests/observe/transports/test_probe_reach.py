"""Reaching a node's probe: only its document counts, and nothing on the way can outlast the deadline."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.json_command import run_json_command
from assay.observe.transports.transport import run_local_probe, run_remote_probe

HUNG_S = 60  # what hangs hangs for so long; who does not wait for it is through long before
ANSWER_S = 300  # who answers does so long before, on a busy machine too
GOOD = {"probe": {"host": {"hostname": {"value": "n1"}}}}


def program(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


def node(reach: Any = None) -> Node:
    variables = {} if reach is None else {"reach": reach}
    return Node("n1", "p", "s", "r01", 1, "x", "spec", "managed", settings=make_node_settings(variables))


@pytest.mark.parametrize("code", [0, 1, 255])
def test_the_document_counts_and_the_exit_code_does_not(code: int) -> None:
    script = program(f"import sys; print({json.dumps(GOOD)!r}); sys.exit({code})")
    assert run_remote_probe(node(script), [], 60) == GOOD


def test_an_exit_code_of_zero_without_a_document_is_no_answer() -> None:
    assert run_remote_probe(node(program("pass")), [], 60) == {
        "probe": {"failed": "the probe printed nothing and ended with exit code 0"}
    }


def test_the_first_line_of_standard_error_is_the_reason() -> None:
    words = "\\n  \\nssh: connect to host n0007 port 22: No route to host\\r\\nmore"
    script = program(f"import sys; sys.stderr.write('{words}'); sys.exit(255)")
    assert run_json_command(script, 60) == {"failed": "ssh: connect to host n0007 port 22: No route to host"}


@pytest.mark.parametrize("rubbish", ["hello", "[1, 2]", "7", '{"a": NaN}', '{"a": "\\ud800"}', "{" * 9, "[" * 99999])
def test_rubbish_is_a_failure_that_shows_how_it_begins(rubbish: str) -> None:
    answer = run_json_command(program(f"print({rubbish!r})"), 60)
    assert answer == {"failed": f"not a JSON document: {rubbish[:200]}"}


def test_what_a_terminal_would_obey_is_made_harmless() -> None:
    answer = run_json_command(program(r"import sys; sys.stderr.write('\x1b]0;owned\x07 boo')"), 60)
    assert answer == {"failed": "·]0;owned· boo"}


def test_bytes_that_are_no_text_do_not_break_the_collector() -> None:
    assert "failed" in run_json_command(program(r"import os; os.write(1, b'\xff\xfe\x00{'); os.write(2, b'')"), 60)


def test_a_probe_that_hangs_is_given_up_on_time_with_all_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = program(
        f"import os, time; child = os.fork(); open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep({HUNG_S})"
    )
    begin = time.monotonic()
    begun = given_up(script, pids, 2)
    assert time.monotonic() - begin < HUNG_S / 2
    while any(map(_runs, begun)):  # a signal takes its moment on a busy machine
        assert time.monotonic() - begin < HUNG_S / 2
        time.sleep(0.01)


def given_up(script: list[str], pids: Path, count: int) -> list[int]:
    """Ask a script that hangs, for longer where a busy machine did not let it begin; return who wrote to `pids`."""
    for seconds in (0.6, 6.0, 20.0):
        pids.write_text("")
        assert run_json_command(script, seconds) == {"failed": f"no answer within {seconds} s"}
        if len(begun := pids.read_text().split()) == count:
            return list(map(int, begun))
    raise AssertionError("it never began")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_child_that_escaped_and_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = program(
        "import os, time\n"
        "if os.fork() == 0:\n"
        f"    os.setsid(); open({str(pid_file)!r}, 'w').write(f'{{os.getpid()}} '); time.sleep({HUNG_S})\n"
        f"print({json.dumps(GOOD)!r})"
    )
    begin = time.monotonic()
    (escaped,) = given_up(script, pid_file, 1)
    assert time.monotonic() - begin < HUNG_S / 2
    os.kill(escaped, 9)


def test_a_process_that_closes_its_output_and_stays_is_not_waited_for() -> None:
    begin = time.monotonic()
    script = program(f"import os, time; os.write(1, b'{{}}'); os.close(1); os.close(2); time.sleep({HUNG_S})")
    assert run_json_command(script, 0.6) == {"failed": "no answer within 0.6 s"}
    assert time.monotonic() - begin < HUNG_S / 2


def test_a_flood_is_cut_off() -> None:
    answer = run_json_command(program("import os\nwhile True: os.write(1, b'x' * 65536)"), 20)
    assert answer == {"failed": "an answer of more than 16 MiB was cut off"}


def test_a_program_that_is_not_there_is_said_plainly() -> None:
    assert run_json_command(["/no/such/ssh", "n1"], 60) == {
        "failed": "/no/such/ssh cannot be started: No such file or directory"
    }


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh here (Debian: openssh-client)")
def test_the_real_ssh_is_refused_in_its_own_words_and_not_waited_for_when_nobody_speaks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        reach = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-p", str(port), "127.0.0.1"]
        assert run_remote_probe(node(reach), [], 0.6) == {"probe": {"failed": "no answer within 0.6 s"}}
    refused = f"ssh: connect to host 127.0.0.1 port {port}: Connection refused"
    assert run_remote_probe(node(reach), [], 60) == {"probe": {"failed": refused}}


def test_an_active_run_that_brings_no_active_channel_reads_failed() -> None:
    answer = run_remote_probe(node(program(f"print({json.dumps(GOOD)!r})")), ["--active", "memory"], 60)
    missing = {name: {"failed": f"the answer holds no {name}"} for name in ("before", "active")}
    assert answer == {**GOOD, **missing}


def test_the_real_probe_answers_through_the_lab(rehearsal: Any) -> None:
    tree = run_remote_probe(rehearsal.fleet.nodes["n0001"], [], ANSWER_S)["probe"]
    assert tree["host"]["hostname"] == {"value": "n0001"}
    assert tree["gpu"]["count"] == {"value": 8}


def test_a_node_that_boots_has_no_route(rehearsal: Any) -> None:
    with rehearsal.world.change("n0002") as state:
        before = state["boot"]["ready_at"]
        state["boot"]["ready_at"] = (rehearsal.world.clock().now() + timedelta(hours=9)).isoformat()
    try:
        answer = run_remote_probe(rehearsal.fleet.nodes["n0002"], [], ANSWER_S)
    finally:
        with rehearsal.world.change("n0002") as state:
            state["boot"]["ready_at"] = before
    assert answer == {"probe": {"failed": "ssh: connect to host n0002 port 22: No route to host"}}


def test_this_machine_itself_is_read_even_from_within_a_lab(rehearsal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_ROOT", str(rehearsal.world.folder("n0001") / "root"))
    monkeypatch.setenv("NVML_STUB", str(rehearsal.world.folder("n0001") / "nvml.json"))
    tree = run_local_probe([], ANSWER_S)["probe"]
    assert tree["host"]["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    assert tree["host"]["cpu_threads"]["value"] > 0
