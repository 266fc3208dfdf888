"""A real sshd for each machine of the site, at a loopback address of its own. It notes each command that comes in.

A session sees the machine's own file tree, made as the lab makes one: what matters here is who came, and for what.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.lab.node.shell import install_tools, write_uptime
from assay.lab.node.stub import build_stub
from assay.lab.world import LabWorld
from tests.integration.fleet_site.recorder_programs import MARK

SSHD = "/usr/sbin/sshd"
needs_sshd = pytest.mark.skipif(
    not (Path(SSHD).exists() and shutil.which("ssh-keygen")), reason="no sshd here (Debian: openssh-server)"
)
START_S = 120.0
PROBE = "python3 -I -S -"
"""The probe that comes along, as the machine is asked to run it. It only reads, but for these options."""
LOADS = {"--active", "--burn-in start", "--burn-in stop"}

_ENTRY = """\
#!/bin/sh
printf '%s\\037%s\\037%s\\036' "${mark}" {machine} "$SSH_ORIGINAL_COMMAND" >> {log}
ASSAY_AT=$(date -u -d "+$(cat {ahead}) seconds" +%Y-%m-%dT%H:%M:%S+00:00)
export ASSAY_AT
case "$SSH_ORIGINAL_COMMAND" in
"{probe}"*) SSH_ORIGINAL_COMMAND="$SSH_ORIGINAL_COMMAND --root $ASSAY_ROOT --at $ASSAY_AT" ;;
esac
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


@dataclass(frozen=True)
class SshCommand:
    """A command that a machine was sent."""

    mark: str
    machine: str
    words: str

    @property
    def is_change(self) -> bool:
        """Whether it is more than the probe that reads."""
        return not self.words.startswith(PROBE) or any(f" {option}" in self.words for option in LOADS)


@dataclass(frozen=True)
class SshPlace:
    """Where a machine listens."""

    machine: str
    address: str
    port: int


class SshMachines:
    """The keys, the client's configuration and the log of all sshd of a site; `ahead` says how far its clock is."""

    def __init__(self, folder: Path, places: Sequence[SshPlace], ahead: Path) -> None:
        self.folder, self.places, self._ahead = folder, places, ahead
        folder.mkdir()
        self._log = folder / "commands.log"
        self._log.touch()
        for key in ("host", "id"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        self.config = folder / "config"
        self.config.write_text("\n".join(map(self._configure, places)))

    def commands(self) -> list[SshCommand]:
        """Return all commands that came in, oldest first."""
        entries = self._log.read_text(errors="replace").split("\036")[:-1]
        return [SshCommand(*entry.split("\037", 2)) for entry in entries]

    @contextmanager
    def serve(self, world: LabWorld) -> Iterator[None]:
        """Run all sshd, whose sessions see the machines of `world`."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        library, tools = build_stub(world.home / "lib"), install_tools(world.home / "tools")
        running = [self._start(place, world, library, tools) for place in self.places]
        try:
            for place in self.places:
                _wait_for(place)
            yield
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(60)

    def _configure(self, place: SshPlace) -> str:
        lines = [
            f"HostName {place.address}",
            f"Port {place.port}",
            f"IdentityFile {self.folder}/id",
            "StrictHostKeyChecking no",
            f"UserKnownHostsFile {self.folder}/known",
        ]
        return "\n  ".join([f"Host {place.machine}", *lines])

    def _start(self, place: SshPlace, world: LabWorld, library: Path | None, tools: Path) -> subprocess.Popen[bytes]:
        machine = world.folder(place.machine)
        write_uptime(machine, world.load(place.machine), world.clock().now())
        entry = self.folder / f"enter-{place.machine}"
        words = {"machine": place.machine, "log": self._log, "ahead": self._ahead}
        entry.write_text(
            _ENTRY.format(mark=MARK, probe=PROBE, **{name: shlex.quote(str(word)) for name, word in words.items()})
        )
        entry.chmod(0o755)
        seen = {
            "ASSAY_ROOT": machine / "root",
            "ASSAY_RATE": 1,
            "ASSAY_LAB_STATE": machine / "state.json",
            "NVML_STUB": machine / "nvml.json",
            "LD_LIBRARY_PATH": library.parent if library else "",
            "PATH": f"{tools}:{Path(sys.executable).parent}:{os.defpath}",
        }
        options = [
            f"ListenAddress={place.address}:{place.port}",
            f"AuthorizedKeysFile={self.folder}/id.pub",
            f"PidFile={self.folder}/{place.machine}.pid",
            "SetEnv=" + " ".join(f'"{name}={text}"' for name, text in seen.items()),
            f"AcceptEnv={MARK}",
            f"ForceCommand={entry}",
            "StrictModes=no",
            "UsePAM=no",
            "MaxSessions=100",
            "MaxStartups=100",
        ]
        command = [SSHD, "-D", "-e", "-f", "/dev/null", "-h", str(self.folder / "host")]
        with (self.folder / f"{place.machine}.log").open("wb") as log:
            arguments = [part for option in options for part in ("-o", option)]
            return subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stderr=log, cwd="/")


def _wait_for(place: SshPlace) -> None:
    ends = time.monotonic() + START_S
    while True:
        with suppress(OSError), socket.create_connection((place.address, place.port), 1) as connection:
            if connection.recv(4) == b"SSH-":
                return
        assert time.monotonic() < ends, f"the sshd of {place.machine} did not start"
        time.sleep(0.02)
