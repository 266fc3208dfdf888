"""A systemd of its own for slow tests, in namespaces of this machine: it starts the units that are shipped, as shipped.

`tests/support/machine-root` makes its root: programs of this machine, and assay in /opt/assay. What the tests may not
see of it there: bounds of CPU and memory, since the control groups of a part of a machine have none to give.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.places import ROOT

TOOLS = ("unshare", "nsenter", "pivot_root", "useradd", "runuser", "systemctl", "dbus-daemon")
SYSTEMD = Path("/lib/systemd/systemd")
WITHIN_S = 600.0
"""How long a service may take, on a machine that others load."""


def find_obstacle() -> str:
    """Return why no systemd can run here, "" if one can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if missing or not SYSTEMD.exists():
        return f"no {', '.join(missing) or SYSTEMD} here (Debian: systemd dbus util-linux passwd)"
    if os.geteuid() != 0:
        return "only root may give systemd namespaces of its own: run it as root"
    if not _find_control_groups():
        return "control groups of version 2 are not mounted here, or not writable"
    return ""


def _find_control_groups() -> Path | None:
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    found = [Path(place) for _, place, kind, options, *_ in mounts if kind == "cgroup2" and "rw" in options.split(",")]
    return found[0] if found else None


OBSTACLE = find_obstacle()
needs_systemd = pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)


class RealSystemd:
    """One systemd. `own`: a folder with what its machine has beside the programs, such as units.

    With `own_network`, it has a loopback of its own, so that the ports in the units are free.
    """

    def __init__(self, folder: Path, own: Path, *, own_network: bool = True) -> None:
        self.folder, self.own, self.own_network = folder, own, own_network
        self._process: subprocess.Popen[bytes] | None = None
        groups = _find_control_groups()
        assert groups, OBSTACLE
        self._group = groups / f"assay-tests-{os.getpid()}-{folder.name}"

    def start(self) -> None:
        """Make the root, start systemd in it, and wait until it answers."""
        (root := self.folder / "root").mkdir()
        self._group.mkdir()
        spaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", *(["--net"] if self.own_network else [])]
        given = (root, ROOT, sys.base_prefix, sysconfig.get_path("purelib"), self.own)
        words = [
            "unshare",
            *spaces,
            "--fork",
            "--kill-child",
            str(ROOT / "tests/support/machine-root"),
            *map(str, given),
        ]
        join = f'echo $$ >"{self._group}/cgroup.procs" && exec "$@"'
        with (self.folder / "said").open("wb") as said:
            self._process = subprocess.Popen(
                ["sh", "-c", join, "sh", *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        self.wait_for("systemd", lambda: self.run("systemctl", "is-system-running").stdout.strip() == "running")

    def stop(self) -> None:
        """End systemd with everything that it started."""
        if self._process:
            self._process.kill()  # unshare takes systemd with it, and the namespace's first process takes the rest
            self._process.wait()
        self.wait_for("its end", lambda: "populated 0" in (self._group / "cgroup.events").read_text())
        for group in sorted(self._group.rglob("*/"), reverse=True):
            if group.is_dir():
                group.rmdir()
        self._group.rmdir()

    @property
    def pid(self) -> int:
        """The process of systemd, as this machine numbers it."""
        assert self._process
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def path(self, name: str) -> Path:
        """Return where this machine finds a file of that one."""
        return Path(f"/proc/{self.pid}/root", name.lstrip("/"))

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a program there, as root and outside of any unit."""
        spaces = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", *(["--net"] if self.own_network else [])]
        command = ["nsenter", f"--target={self.pid or 1 << 30}", *spaces, "--root", "--wd", *map(str, words)]
        world = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "ASSAY_CONTEXT": "fleet"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=world)

    def do(self, *words: object) -> str:
        """Run a program there, which must succeed, and return what it printed."""
        done = self.run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def describe(self) -> str:
        """Return what the services said, and what systemd says about those that failed."""
        said = self.path("/var/log/services")
        text = said.read_text(errors="replace") if said.exists() else ""
        own = (self.folder / "said").read_text(errors="replace")
        return f"{own}\n{self.run('systemctl', 'status', '--failed', '--full').stdout}\n{text[-6000:]}"

    def wait_for(self, what: str, is_there: Callable[[], object]) -> None:
        """Wait until it is there. Raises AssertionError, with what the services said, if it never comes."""
        assert self._process
        ends_at = time.monotonic() + WITHIN_S
        while not is_there():
            assert time.monotonic() < ends_at, f"no {what}: {self.describe()}"
            assert self._process.poll() is None or what == "its end", (self.folder / "said").read_text()
            time.sleep(0.2)
