"""The real conserver records consoles: by the real ssh and sshd with a password, by serial over LAN, by a program.

sshd plays a BMC of OpenBMC: it lets in by password, and its shell shows what a serial port would. The account is in a
passwd and a shadow of its own namespace; nothing of this machine changes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import app
from assay.model.errors import AssayError
from tests.support.reserved_ports import reserve_ports

PASSWORD = "tulip:'\"of $the #bmc"
LOGIN = f"warden:{PASSWORD}"
WORDS = "[   12.345678] NVRM: Xid (PCI:0000:1b:00): 79, pid=4242, GPU has fallen off the bus."
WITHIN_S = 60.0
PROGRAMS = {"conserver": "conserver-server", "sshpass": "sshpass", "sshd": "openssh-server", "ipmitool": "ipmitool"}
BMC = """
set -e
mount --make-rprivate /
mount --bind {folder}/passwd /etc/passwd
mount --bind {folder}/shadow /etc/shadow
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f /dev/null -h {folder}/host -p {port} -o ListenAddress=127.0.0.1 -o UsePAM=no \\
  -o PidFile=none -o PermitRootLogin=yes -o PrintMotd=no -o PubkeyAuthentication=no -o KbdInteractiveAuthentication=no
"""


def find_obstacle() -> str:
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program, path=path)]
    if missing:
        return f"it needs {' '.join(missing)}: tools/system-packages"
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        return "a BMC with an account of its own needs root and namespaces: run this test as root"
    return ""


OBSTACLE = find_obstacle()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]


def until(true: Callable[[], object], what: str) -> None:
    ends_at = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < ends_at, what
        time.sleep(0.2)


@contextmanager
def running(argv: Sequence[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("w") as output:
        process = subprocess.Popen(
            argv, stdout=output, stderr=output, env={**os.environ, **environment}, start_new_session=True
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


class Site:
    """A fleet of `assay init` with the BMC, its serial port (a file), and conserver."""

    def __init__(self, folder: Path, consoles: dict[str, dict[str, object]], password: str = PASSWORD) -> None:
        self.folder, self.fleet, self.serial = folder, folder / "fleet", folder / "serial"
        self.serial.write_text("")
        assert CliRunner().invoke(app, ["init", str(self.fleet)]).exit_code == 0
        inventory = next((self.fleet / "inventory").glob("*.yml"))
        declared = yaml.safe_load(inventory.read_text())
        pool = declared["h100-a"]
        (folder / "bmc.login").write_text(f"warden:{password}\n")
        pool["vars"]["bmc_credentials"] = {"file": str(folder / "bmc.login")}
        for name, console in consoles.items():
            pool["hosts"][name] |= {"bmc_address": "127.0.0.1", "bmc_console": console}
        inventory.write_text(yaml.safe_dump(declared))
        self.logs = self.fleet / ".assay" / "consoles"
        self.file = folder / "conserver.cf"
        self.write_file()

    def call(self, *words: str) -> tuple[int, str]:
        where = [] if words[0] == "faults" else ["--fleet", str(self.fleet)]
        answer = CliRunner().invoke(app, [*words, *where], env={"ASSAY_CONTEXT": "fleet"})
        return (
            (2, str(answer.exception))
            if isinstance(answer.exception, AssayError)
            else (answer.exit_code, answer.output)
        )

    def write_file(self, pause: str = "sleep 1") -> None:
        rc, text = self.call("console", "--conserver")
        assert rc == 0, text
        (port,) = reserve_ports(1)
        assert "tulip" not in text
        self.file.write_text(text.replace("sleep 60", pause).replace("33782", str(port)))

    @contextmanager
    def bmc(self, port: int) -> Iterator[None]:
        folder = self.folder / "bmc"
        if not folder.exists():
            folder.mkdir()
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host"], check=True)
            shell = folder / "shell"
            shell.write_text(
                f'#!/bin/sh\necho "terminal: $([ -t 0 ] && echo yes) asked: $*"\ntail -n +1 -F {self.serial}\n'
            )
            shell.chmod(0o755)
            salted = subprocess.run(
                ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True
            ).stdout.strip()
            (folder / "passwd").write_text(f"{Path('/etc/passwd').read_text()}warden:x:0:0::/:{shell}\n")
            (folder / "shadow").write_text(f"{Path('/etc/shadow').read_text()}warden:{salted}:20000:0:99999:7:::\n")
        argv = ["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", BMC.format(folder=folder, port=port)]
        with running(argv, self.folder / "sshd.log"):
            yield

    @contextmanager
    def conserver(self) -> Iterator[subprocess.Popen[bytes]]:
        argv = ["conserver", "-M", "127.0.0.1", "-C", str(self.file)]
        path = f"{os.environ['PATH']}:/usr/sbin"
        with running(argv, self.folder / "conserver.log", TZ="UTC", PATH=path) as process:
            yield process

    def show(self, line: str) -> None:
        with self.serial.open("a") as port:
            port.write(f"{line}\r\n")

    def read(self, *words: str) -> str:
        return self.call("console", *words)[1]


def test_a_console_is_recorded_over_ssh_and_its_kernel_lines_are_judged(tmp_path: Path):
    (port,) = reserve_ports(1)
    site = Site(tmp_path, {"n0001": {"port": port}, "n0002": {"port": port, "command": ["console", "com2"]}})
    assert site.call("console", "n0001")[0] == 2, "nothing is recorded yet"
    with site.bmc(port), site.conserver():
        until(lambda: "terminal: yes asked:" in site.read("n0001"), "it is connected")
        site.show("\x1b[1mbooting\x1b[0m")
        site.show(WORDS)
        until(lambda: "fallen off" in site.read("n0001"), "the line is there")
        until(lambda: "asked: -c console com2" in site.read("n0002"), "the command opened it")
        processes = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        assert "tulip" not in processes
    lines = site.read("n0001").splitlines()
    assert any(line.endswith("] booting") for line in lines)
    assert site.call("console", "n0001", "--grep", "FALLEN OFF")[1].splitlines() == [
        line for line in lines if "fallen off" in line
    ]
    assert site.call("console", "n0001", "--grep", "no such words") == (1, "no line has this\n")
    assert "fallen off" in site.read("n0001", "--since", "1h")
    assert not any("tulip" in path.read_text() for path in site.logs.iterdir())
    (tmp_path / "console.log").write_text(site.read("n0001"))
    rc, judged = site.call("faults", str(tmp_path / "console.log"))
    assert (rc, "gpu.xid.79 on 0000:1b:00" in judged) == (1, True)


def test_a_bmc_that_goes_away_is_seen_and_recorded_again_and_a_stranger_gets_no_password(tmp_path: Path):
    (port,) = reserve_ports(1)
    site = Site(tmp_path, {"n0001": {"port": port}})
    with site.conserver():
        with site.bmc(port):
            until(lambda: "terminal: yes" in site.read("n0001"), "it is connected")
        until(lambda: "[-- Console down --]" in site.read("n0001"), "it is gone")
        with site.bmc(port):
            until(lambda: site.read("n0001").count("terminal: yes") == 2, "it is recorded again")
        shutil.rmtree(tmp_path / "bmc")
        with site.bmc(port):
            until(lambda: "HOST IDENTIFICATION HAS CHANGED" in site.read("n0001"), "another key is refused")
            until(lambda: "Host key verification failed" in site.read("n0001"), "another key is refused")
        assert site.read("n0001").count("terminal: yes") == 2


def test_a_wrong_password_is_tried_once_in_a_while(tmp_path: Path):
    (port,) = reserve_ports(1)
    site = Site(tmp_path, {"n0001": {"port": port}}, password="lily")
    site.write_file(pause="sleep 60")
    with site.bmc(port), site.conserver():
        until(lambda: "Permission denied" in site.read("n0001"), "it is refused")
        time.sleep(5)
    assert (tmp_path / "sshd.log").read_text().count("Failed password") == 1


def test_a_console_is_recorded_by_a_program_and_pieces_are_read_in_order(tmp_path: Path):
    site = Site(tmp_path, {"n0001": {"way": "program", "command": [sys.executable, "-u", "-c", "print('it\\'s; up')"]}})
    with site.conserver() as conserver:
        until(lambda: "it's; up" in site.read("n0001"), "it runs")
        (site.logs / "n0001.log").rename(site.logs / "n0001.log-20260101-000000")  # as conserver does by size
        conserver.send_signal(signal.SIGHUP)
        until((site.logs / "n0001.log").exists, "it begins a new file")
        until(lambda: "it's; up" in (site.logs / "n0001.log").read_text(), "and goes on there")
    times = [line.split("]")[0] for line in site.read("n0001").splitlines()]
    assert times == sorted(times)
    assert len(times) > len((site.logs / "n0001.log").read_text().splitlines()) / 2


def test_conserver_deletes_what_is_old_or_too_much_and_nothing_else(tmp_path: Path):
    site = Site(tmp_path, {"n0001": {"way": "program", "command": ["sleep", "600"]}})
    pieces = [site.logs / f"n0001.log-20261110-0000{n:02}" for n in range(30)]
    for number, piece in enumerate(pieces):
        piece.write_text("x")
        os.utime(piece, (time.time() - 3600 * (30 - number),) * 2)
    stays = [site.logs / name for name in ("n0002.log", "n0002.log-20261110-000000", "known_hosts")]
    for path in stays:
        path.write_text("x")
    old = site.logs / "n0002.log-20261010-000000"
    old.write_text("x")
    for path in (old, site.logs / "known_hosts", site.logs / "n0002.log"):
        os.utime(path, (time.time() - 86400 * 32,) * 2)
    with site.conserver():
        until(lambda: not old.exists() and not pieces[14].exists(), "old files go")
    assert [piece for piece in pieces if piece.exists()] == pieces[15:]
    assert all(path.exists() for path in stays)


def test_a_console_is_recorded_by_serial_over_lan(tmp_path: Path):
    if not shutil.which("ipmi_sim"):
        pytest.skip("it needs openipmi: tools/system-packages")
    ports = reserve_ports(3)
    site = Site(tmp_path, {"n0001": {"way": "ipmi", "port": ports[0]}}, password="tulip")
    with ExitStack() as stack:
        write_ipmi_sim(tmp_path, *ports)
        stack.enter_context(
            running(["ipmi_sim", "-c", f"{tmp_path}/lan.conf", "-f", f"{tmp_path}/sim.emu", "-n"], tmp_path / "sim.log")
        )
        stack.enter_context(site.conserver())
        until(lambda: "SOL Session operational" in site.read("n0001"), "it is connected")


def write_ipmi_sim(folder: Path, lan: int, serial: int, console: int) -> None:
    (folder / "lan.conf").write_text(
        f"""name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {lan}
    priv_limit admin
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
  sol "telnet:127.0.0.1:{serial}" 115200
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "warden" "tulip" admin 10 none md2 md5 straight
"""
    )
    (folder / "sim.emu").write_text(
        "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n"
    )
