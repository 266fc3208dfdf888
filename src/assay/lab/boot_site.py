"""Copies a fleet repository to a place where its machines boot from a server on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from assay.declare.home import CONTEXT_VARIABLE
from assay.lab.real_machine import HOST, build_image, find_obstacle
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from assay.model.fleet import Fleet

FOLDERS = ("inventory", "specs", "suites", "playbooks")
LISTEN_S = 60.0


@dataclass(frozen=True, slots=True)
class BootSite:
    """A copy of a fleet at `root`. `obstacle`: why its machines do not start in qemu, "" if they do."""

    root: Path
    port: int
    obstacle: str

    @property
    def server(self) -> str:
        """The boot server's address, as a machine reaches it."""
        return f"http://{'127.0.0.1' if self.obstacle else HOST}:{self.port}"

    def describe_start(self) -> str:
        """Return how real the machines' starts are, for people."""
        if self.obstacle:
            return f"The new machines start virtually, over real HTTP. For real ones in qemu: {self.obstacle}"
        return "The new machines start in qemu: a real iPXE asks a real boot server, and starts this system's kernel."

    def list_consoles(self) -> list[Path]:
        """Return what the machines' consoles showed, in files."""
        return sorted((self.root / "served").glob("console-*.log"))

    def plug_in(self, world: LabWorld, nodes: list[str]) -> None:
        """Let a DHCP server lead these machines to the boot server at their next start."""
        for node in nodes:
            with world.change(node) as state:
                state["boot_server"] = self.server
                state["qemu_folder"] = "" if self.obstacle else str(self.root / "served")


def lay_out_boot_site(source: Fleet, folder: Path, new: list[str]) -> BootSite:
    """Copy a fleet's files. Its `new` nodes are machines that nobody has started yet; the image is built here."""
    port = _find_free_port()
    for name in FOLDERS:
        shutil.copytree(source.root / name, folder / name)
    shutil.copy(source.root / "ansible.cfg", folder)
    (folder / "served").mkdir()
    site = BootSite(folder, port, find_obstacle())
    _declare_image(source, site, new)
    hosts: dict[str, dict[str, Any]] = {}
    for number, node in enumerate(new, 1):
        pool = hosts.setdefault(source.nodes[node].pool, {"hosts": {}})
        pool["hosts"][node] = {"mac": f"02:00:00:00:00:{number:02x}", "lifecycle_start": "discovered"}
    (folder / "inventory" / "new-machines.yml").write_text(yaml.safe_dump(hosts))
    return site


@contextlib.contextmanager
def run_boot_server(site: BootSite) -> Iterator[None]:
    """Run `assay serve --boot` while the block lasts. Raises AssayError if it does not listen."""
    words = ["serve", "--boot", "--host", "127.0.0.1", "--port", str(site.port), "--fleet", str(site.root)]
    log = site.root / "boot-server.log"
    with log.open("ab") as file:
        environment = os.environ | {CONTEXT_VARIABLE: "lab"}
        process = subprocess.Popen([sys.executable, "-m", "assay", *words], stdout=file, stderr=file, env=environment)
    try:
        deadline = time.monotonic() + LISTEN_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", site.port), 1.0):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssayError("the boot server did not start", where=str(log), fix="read the log")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(LISTEN_S)


def _declare_image(source: Fleet, site: BootSite, nodes: list[str]) -> None:
    """Write the files of the nodes' images, and the address of their boot server."""
    files = _make_files(site)
    for node in nodes:
        image = source.image_of(node)
        provisioning = source.provisioning_of(node)
        if image is None or provisioning is None:
            raise AssayError(f"no Provisioning holds for {node}", fix="name one of a pool with a Provisioning")
        kernel, initrd = (
            {"url": file.as_uri(), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()} for file in files
        )
        made = {"kernel": kernel, "initrds": [initrd], "arguments": ["console=ttyS0"]}
        _edit(site.root / "specs" / "images", image.name, made)
        _edit(site.root / "specs" / "provisioning", provisioning.name, {"url": site.server})


def _make_files(site: BootSite) -> tuple[Path, Path]:
    folder = site.root / "served"
    if not site.obstacle:
        return build_image(folder)
    names = ("vmlinuz", "initrd")
    for name in names:
        (folder / name).write_text(f"stands for the {name} of a machine that is not real\n")
    return folder / names[0], folder / names[1]


def _edit(folder: Path, name: str, changes: dict[str, Any]) -> None:
    for path in folder.glob("*.yaml"):
        document = yaml.safe_load(path.read_text())
        if document["name"] == name:
            path.write_text(yaml.safe_dump(document | changes, sort_keys=False))


def _find_free_port() -> int:
    """Return a port below 32768, where the ports begin that Linux gives to others meanwhile."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            return port
    raise AssayError("no port is free for the boot server", where="127.0.0.1")
