"""A node with a real sshd, whose root is an overlay of this machine's, with mounts and processes of its own.

Its kernel is made of files in /node ($ASSAY_ROOT): those of a virtual node of the lab. Nothing of this machine changes.
It needs root, sshd and unshare.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.reserved_ports import reserve_ports

START_S = 60.0
MOUNTS = """
set -e
mount --make-rprivate /
mount -t tmpfs -o size=256m tmpfs {home}
mkdir {home}/up {home}/wk {home}/m
mount -t overlay overlay -o lowerdir=/,upperdir={home}/up,workdir={home}/wk {home}/m
cd {home}/m
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
cp -r {tree} node
cp {keys}/host etc/ssh/hostkey
mkdir -p run/sshd root/.ssh usr/local/sbin
cp {keys}/id.pub root/.ssh/authorized_keys
chmod 700 root/.ssh
rm -rf root/.bashrc root/.profile root/.bash_profile root/.ansible
cp {programs}/* usr/local/sbin
exec chroot . /usr/sbin/sshd -D -e -f /dev/null -h /etc/ssh/hostkey -p {port} -o ListenAddress=127.0.0.1 \\
  -o UsePAM=no -o PermitRootLogin=yes -o Subsystem='sftp internal-sftp' \\
  -o SetEnv='ASSAY_ROOT=/node PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin'
"""


@dataclass(frozen=True)
class OverlayNode:
    """The node listens on `port` of this machine and lets in the owner of the key file `key`. `pid` is its sshd's."""

    port: int
    key: Path
    pid: int

    def path(self, path: str) -> Path:
        """Return a file below the node's $ASSAY_ROOT, as this machine sees it."""
        return Path(f"/proc/{self.pid}/root/node/{path}")


def find_obstacle() -> str:
    """Return why this machine cannot have such a node, and what to do; "" if it can."""
    if os.geteuid() != 0:
        return "overlay nodes need root: run this test as root"
    for program, package in (("/usr/sbin/sshd", "openssh-server"), ("/usr/bin/python3", "python3")):
        if not Path(program).exists():
            return f"overlay nodes need {program}: install {package}"
    if subprocess.run(["unshare", "-m", "-p", "-f", "true"], capture_output=True, check=False).returncode:
        return "overlay nodes need namespaces: let this machine's root call unshare"
    return ""


@contextmanager
def run_overlay_node(folder: Path, tree: Path, programs: dict[str, str]) -> Iterator[OverlayNode]:
    """Run a node with the kernel files of `tree` and these shell scripts as programs, while the block lasts."""
    keys, scripts, home = folder / "keys", folder / "programs", folder / "node"
    for path in (keys, scripts, home):
        path.mkdir(parents=True)
    for name in ("host", "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
    for name, script in programs.items():
        (scripts / name).write_text(f"#!/bin/sh\n{script}")
        (scripts / name).chmod(0o755)
    (port,) = reserve_ports(1)
    script = MOUNTS.format(home=home, tree=tree, keys=keys, programs=scripts, port=port)
    log = folder / "sshd.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            ["unshare", "-m", "-p", "-f", "--kill-child", "bash", "-c", script], stdout=file, stderr=file
        )
    try:
        yield OverlayNode(port, keys / "id", _await_sshd(process, port, log))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _await_sshd(process: subprocess.Popen[bytes], port: int, log: Path) -> int:
    """Wait until sshd answers, and return its process id here."""
    ends_at = time.monotonic() + START_S
    while time.monotonic() < ends_at and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
            continue
        return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
    raise RuntimeError(f"sshd did not start: {log.read_text()}")
