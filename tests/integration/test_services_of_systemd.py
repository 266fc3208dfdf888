"""The units in deploy/: systemd reads them, they give rights away, and what they start says when it is ready."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from assay.model.service_manager import ALIVE, READY, STOPPING, notify_service_manager
from tests.support.forked_python import ForkedAssay
from tests.support.places import ROOT, SMALLEST
from tests.support.reserved_ports import reserve_ports

UNITS = sorted((ROOT / "deploy").glob("*.service"))
MOST_EXPOSED = {"assay-join.service": 50}
"""Of 100, as `systemd-analyze security` counts. assay-join asks the TPM and writes below /etc: it keeps more rights."""
EXPOSED = 25
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="install systemd for systemd-analyze")


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What listens where systemd would."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "notify"))
        line.settimeout(1)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield line


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_the_unit_and_finds_it_closed(unit: Path) -> None:
    said = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert [line for line in said.stderr.splitlines() if "is not executable" not in line] == []
    bound = MOST_EXPOSED.get(unit.name, EXPOSED)
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={bound}", unit]
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout


def run_reconcile(folder: Path) -> list[object]:
    shutil.copytree(SMALLEST, folder / "fleet")
    return ["reconcile", "--interval", "3600", "--fleet", folder / "fleet"]


def run_serve(folder: Path) -> list[object]:
    shutil.copytree(SMALLEST, folder / "fleet")
    return ["serve", "--port", "0", "--boot", "--fleet", folder / "fleet"]


def run_agent(folder: Path) -> list[object]:
    (folder / "token").write_text("token")
    (folder / "kmsg").touch()
    trustme.CA().cert_pem.write_to_path(str(folder / "ca.pem"))
    nobody = ["--server", f"https://127.0.0.1:{reserve_ports(1)[0]}", "--token-file", folder / "token"]
    return [
        "agent",
        *nobody,
        "--ca",
        folder / "ca.pem",
        "--state",
        folder / "state",
        "--log",
        folder / "kmsg",
        "--no-events",
    ]


READS_AGAIN = {
    run_reconcile: ["SIGHUP: reads the fleet again", "read the fleet again (no new commit)"],
    run_serve: ["SIGHUP: reads the certificate, the tokens and the fleet again"],
    run_agent: ["SIGHUP: read the certificates again"],
}


@pytest.mark.parametrize("service", READS_AGAIN, ids=lambda service: service.__name__)
def test_a_service_says_when_it_is_ready_alive_reads_again_and_stops(
    tmp_path: Path, manager: socket.socket, service: Callable[[Path], list[object]]
) -> None:
    command = [sys.executable, "-m", "assay", *service(tmp_path)]
    with (tmp_path / "said").open("w") as said:
        process = ForkedAssay(command, stdout=subprocess.DEVNULL, stderr=said, text=True)
    try:
        wait_for(READY, manager, process)
        wait_for(ALIVE, manager, process)
        process.send_signal(signal.SIGHUP)
        wait_for("RELOADING=1", manager, process)
        for _ in range(2 if service is run_reconcile else 1):  # a turn of the loop may have begun before the signal
            wait_for(READY, manager, process)
        process.send_signal(signal.SIGTERM)
        wait_for(STOPPING, manager, process)
        assert process.wait() in (0, -signal.SIGTERM), "systemd takes both for a clean end"
        assert [line for line in READS_AGAIN[service] if line not in (tmp_path / "said").read_text()] == []
    finally:
        process.kill()
        process.wait()


def test_each_unit_of_a_service_asks_for_what_its_program_says() -> None:
    services = [unit for unit in UNITS if unit.name != "assay-join.service"]
    assert len(services) == 3
    for unit in services:
        lines = set(unit.read_text().splitlines())
        assert {"Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "Restart=always"} <= lines, unit.name
        assert any(line.startswith("WatchdogSec=") for line in lines), unit.name


def wait_for(state: str, manager: socket.socket, process: subprocess.Popen[str]) -> None:
    """Read what the process says until it says this. A process that has ended says nothing more."""
    said = list[str]()
    while state not in said:
        is_running = process.poll() is None
        try:
            said = manager.recv(4096).decode().splitlines()
        except TimeoutError:
            assert is_running, f"it ended with {process.returncode} before it said {state}"


def test_where_nobody_listens_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("", str(tmp_path / "nobody"), "@nobody-here", "vsock:2:1"):
        monkeypatch.setenv("NOTIFY_SOCKET", place)
        notify_service_manager(READY)


def test_a_socket_without_a_file_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        name = f"assay-test-{os.getpid()}"
        line.bind(f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify_service_manager(READY, ALIVE)
        assert line.recv(4096) == b"READY=1\nWATCHDOG=1"
