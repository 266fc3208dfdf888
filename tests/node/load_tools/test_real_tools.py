"""The real fio, stress-ng and df, where they are installed, print what the readers expect."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from assay.node.load_tools.fio import build_verify_command, parse_fio_read, parse_fio_verify, run_shared_storage
from assay.node.load_tools.network import parse_ib_write_bw, parse_iperf3
from assay.node.load_tools.stress_tools import parse_stress_ng, parse_stressapptest, run_memory
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings, ToolOutput, call_tool
from assay.node.probe.node_access import NodeRoot, run_tool
from tests.support.reserved_ports import reserve_ports

needs_fio = pytest.mark.skipif(not Path("/usr/bin/fio").exists(), reason="fio is not installed (package fio)")
no_stress_ng = not shutil.which("stress-ng")
needs_stress_ng = pytest.mark.skipif(no_stress_ng, reason="stress-ng is not installed (package stress-ng)")


@needs_fio
def test_a_read_by_the_real_fio_has_a_speed(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(2**22))
    command = ["/usr/bin/fio", "--name=x", f"--filename={tmp_path / 'data'}", "--readonly", "--rw=read", "--bs=64k"]
    leaf = call_tool([*command, "--output-format=json"], LoadOrder(20), parse_fio_read)
    assert leaf["value"] > 0


@needs_fio
def test_the_real_fio_on_a_drive_that_is_not_there_failed(tmp_path: Path) -> None:
    command = ["/usr/bin/fio", "--name=x", f"--filename={tmp_path / 'none'}", "--readonly", "--rw=read"]
    assert "exit code 1" in call_tool([*command, "--output-format=json"], LoadOrder(20), parse_fio_read)["failed"]


@needs_stress_ng
@pytest.mark.parametrize("free_mib", [100, 2**40])
def test_the_real_stress_ng_verifies_memory_as_it_is_called_on_a_node(tmp_path: Path, free_mib: int) -> None:
    """On a host of any size: the memory that it gets follows from the seconds and the processors too."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemAvailable: {free_mib * 1024} kB\n")
    assert run_memory(NodeRoot(str(tmp_path)), LoadOrder(5)) == {"errors": {"value": 0}}


@needs_stress_ng
def test_the_real_stress_ng_without_time_for_its_memory_is_no_result() -> None:
    command = ["stress-ng", "--vm", "1", "--vm-bytes", "900g", "--vm-method", "all", "--verify", "--timeout", "1s"]
    assert "verified nothing" in call_tool([*command, "--metrics-brief"], LoadOrder(1), parse_stress_ng)["failed"]


@needs_stress_ng
def test_the_real_stress_ng_that_was_killed_is_not_clean() -> None:
    done = subprocess.run(
        ["timeout", "-s", "KILL", "0.3", "stress-ng", "--vm", "1", "--vm-bytes", "4M", "--verify", "--timeout", "9s"],
        capture_output=True,
        text=True,
        check=False,
    )
    killed = ToolOutput("stress-ng", done.returncode, done.stdout, done.stderr)
    assert "did not complete" in parse_stress_ng(killed)["failed"]


def test_a_tool_that_does_not_end_is_given_up() -> None:
    assert run_tool(["sleep", "9"], 0.2, lambda text: {"value": text}) == {"failed": "sleep did not end within 0.2 s"}


def test_a_tool_that_is_not_there_is_absent_and_one_that_cannot_start_failed(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("no program")
    assert run_tool(["no-such-tool"], 1, lambda text: {"value": text}) == {"absent": "no-such-tool is not installed"}
    assert "could not be started" in run_tool([str(tmp_path / "tool")], 1, lambda text: {"value": text})["failed"]


def test_what_a_tool_prints_counts_and_its_exit_code_does_not() -> None:
    assert run_tool(["sh", "-c", "echo fine; exit 9"], 5, lambda text: {"value": text}) == {"value": "fine\n"}


def need(tool: str, package: str = "") -> pytest.MarkDecorator:
    fix = f"apt-get install {package or tool}, or sh tools/system-packages as root"
    return pytest.mark.skipif(not shutil.which(tool), reason=f"{tool} is not installed: {fix}")


@pytest.mark.slow
@need("stressapptest")
@pytest.mark.parametrize(("planted", "counts_errors"), [(["--force_errors"], True), ([], False)])
def test_a_wrong_block_that_stressapptest_plants_is_counted(planted: list[str], counts_errors: bool) -> None:
    command = ["stressapptest", "-W", "-s", "2", "-M", "16", "-m", "1", *planted]
    leaf = call_tool(command, LoadOrder(2), parse_stressapptest)["errors"]
    assert (leaf["value"] > 0) == counts_errors


@pytest.mark.slow
@need("stressapptest")
def test_a_stressapptest_without_memory_is_no_defect_and_no_pass() -> None:
    command = ["stressapptest", "-W", "-s", "2", "-M", "99999999", "-m", "1"]
    assert "could not test" in call_tool(command, LoadOrder(2), parse_stressapptest)["failed"]


@pytest.mark.slow
@need("stressapptest")
def test_a_stressapptest_that_is_killed_has_no_result() -> None:
    command = ["timeout", "-s", "KILL", "0.5", "stressapptest", "-W", "-s", "20", "-M", "16", "-m", "1"]
    leaf = call_tool(command, LoadOrder(20), parse_stressapptest)
    assert "killed" in leaf["failed"] or "did not complete" in leaf["failed"]


@pytest.mark.slow
@need("fio")
def test_one_byte_that_changed_on_the_drive_is_found_by_fio(tmp_path: Path) -> None:
    scratch, order = tmp_path / "scratch", LoadOrder(20)
    written = call_tool(build_verify_command(str(scratch), "4M", direct=False), order, parse_fio_verify)
    assert written["intact"] == {"value": True}
    with scratch.open("r+b") as file:
        file.seek(2_000_000)
        file.write(b"X")
    again = build_verify_command(str(scratch), "4M", is_written=True, direct=False)
    assert call_tool(again, order, parse_fio_verify) == {"intact": {"value": False}}


@pytest.mark.slow
@need("fio")
def test_fio_verifies_no_file_that_it_had_to_make(tmp_path: Path) -> None:
    only = build_verify_command(str(tmp_path / "none"), "4M", is_written=True, direct=False)
    assert "could not verify" in call_tool(only, LoadOrder(20), parse_fio_verify)["failed"]


@pytest.mark.slow
@need("iperf3")
def test_a_connection_that_iperf3_was_refused_is_no_speed() -> None:
    (port,) = reserve_ports(1)
    command = ["iperf3", "-J", "-c", "127.0.0.1", "-p", str(port)]
    assert "refused" in call_tool(command, LoadOrder(20), parse_iperf3)["failed"]


@pytest.mark.slow
@need("ib_write_bw", "perftest")
def test_perftest_without_an_adapter_is_no_speed() -> None:
    command = ["ib_write_bw", "-d", "no_such_adapter", "-F", "--report_gbits"]
    assert "failed" in call_tool(command, LoadOrder(20), parse_ib_write_bw)


def test_a_folder_that_is_on_no_shared_storage_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    mounts, order = tmp_path / "proc/mounts", LoadOrder(20, site=SiteSettings(storage="/shared/assay"))
    for lines in (
        "/dev/md0 / ext4 rw 0 0\nfiler:/y /shar nfs4 rw 0 0\n",
        "filer:/x /shared nfs4 rw 0 0\nt /shared tmpfs rw 0 0\n",
    ):
        mounts.write_text(lines)
        assert "is not on shared storage, but on" in run_shared_storage(NodeRoot(str(tmp_path)), order)["failed"]
    assert "declares no shared storage" in run_shared_storage(NodeRoot(str(tmp_path)), LoadOrder(20))["absent"]
