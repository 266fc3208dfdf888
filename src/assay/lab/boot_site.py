"""Copies a fleet repository, and lets the machines of the copy boot from a server on this machine."""

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
from pathlib import Path
from typing import Any

import yaml

from assay.declare.home import CONTEXT_VARIABLE
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet

FOLDERS = ("inventory", "specs", "suites", "playbooks")
LISTEN_S = 60.0


@frozen
class BootSite:
    """A copy of a fleet at `root`, whose boot server listens on a port of this machine."""

    root: Path
    port: int

    @property
    def server(self) -> str:
        """The boot server's address."""
        return f"http://127.0.0.1:{self.port}"

    def plug_in(self, world: LabWorld, nodes: list[str]) -> None:
        """Let a DHCP server lead these machines to the boot server at their next start."""
        for node in nodes:
            with world.change(node) as state:
                state["boot_server"] = self.server


def copy_fleet(source: Fleet, folder: Path) -> Path:
    """Copy a fleet's files to `folder`, and return it."""
    for name in FOLDERS:
        shutil.copytree(source.root / name, folder / name)
    shutil.copy(source.root / "ansible.cfg", folder)
    return folder


def lay_out_boot_site(source: Fleet, folder: Path, new: list[str]) -> BootSite:
    """Let the `new` nodes of a fleet's copy be machines that nobody has started yet; their image is made up here."""
    site = BootSite(folder, _find_free_port())
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
    files = []
    for name in ("vmlinuz", "initrd"):
        file = site.root / name
        file.write_text(f"stands for the {name} of a machine that is not real\n")
        files.append({"url": file.as_uri(), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()})
    kernel, initrd = files
    for node in nodes:
        image = source.image_of(node)
        provisioning = source.provisioning_of(node)
        if image is None or provisioning is None:
            raise AssayError(f"no Provisioning holds for {node}", fix="name one of a pool with a Provisioning")
        made = {"kernel": kernel, "initrds": [initrd], "arguments": ["console=ttyS0"]}
        _edit(site.root / "specs" / "images", image.name, made)
        _edit(site.root / "specs" / "provisioning", provisioning.name, {"url": site.server})


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
