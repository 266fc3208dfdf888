"""A lab whose machines boot from a real `assay serve --boot` over HTTP: images on disk, real BMCs, one ledger."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from assay.act.actions import netboot
from assay.act.actions.action import EffectIntent
from assay.act.boot.attempts import BOOT_KINDS, BootAttempt, fold_attempts
from tests.support.forked_python import ForkedAssay
from tests.support.lab_room import Room, lab_room, lay_out, wish
from tests.support.real_machine import HOST, build_image
from tests.support.reserved_ports import reserve_ports

IMAGE = {"vmlinuz": b"the kernel of a test\n" * 1000, "initrd.gz": b"its first files\n" * 1000}
RATE = 60.0
OTHERS = {"nodes": ["n0016"], "reason": "serves already", "expires": "2036-12-31"}
PATIENT = {"pxe": 200, "kernel": 210, "cloud_init": 220, "agent": 240, "source": "a test on a busy machine"}
PATIENCE_S = 60.0


def lay_out_boot(root: Path, port: int, **provisioning: Any) -> None:
    """Copy the example fleet; its Provisioning leads to `port`, and its image lies on the disk."""
    lay_out(root)
    declare_image(root, port, **provisioning)
    macs = {f"n{number:04}": {"mac": f"02:00:00:00:00:{number:02x}"} for number in range(1, 17)}
    (root / "inventory" / "macs.yml").write_text(yaml.safe_dump({"h100-a": {"hosts": macs}}))


def declare_image(root: Path, port: int, **provisioning: Any) -> None:
    """Let the Provisioning of a fleet lead to `port`, and its image lie on the disk."""
    files = root / "served"
    files.mkdir()
    for name, content in IMAGE.items():
        (files / name).write_bytes(content)
    image = yaml.safe_load((root / "specs/images/gpu-node.yaml").read_text())
    kernel, initrd = ({"url": (files / n).as_uri(), "sha256": hashlib.sha256(c).hexdigest()} for n, c in IMAGE.items())
    image |= {"kernel": kernel, "initrds": [initrd], "stands_in": ""}
    (root / "specs/images/gpu-node.yaml").write_text(yaml.safe_dump(image))
    path = root / "specs/provisioning/lab1.yaml"
    own = {"url": f"http://127.0.0.1:{port}", "secure_url": "https://boot.site:8443", "stands_in": ""}
    content = yaml.safe_load(path.read_text()) | own | provisioning
    path.write_text(yaml.safe_dump(content))


def serve_real_image(root: Path) -> None:
    """Let the nodes boot a kernel of the distribution. `find_obstacle` must have found none."""
    kernel, initrd = ({"url": f.as_uri(), "sha256": _digest(f)} for f in build_image(root / "served"))
    path = root / "specs/images/gpu-node.yaml"
    image = yaml.safe_load(path.read_text()) | {"kernel": kernel, "initrds": [initrd]}
    path.write_text(yaml.safe_dump(image | {"arguments": ["console=ttyS0", "quiet"]}))


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def declare_new(root: Path, nodes: Sequence[str]) -> None:
    path = root / "inventory" / "macs.yml"
    content = yaml.safe_load(path.read_text())
    for node in nodes:
        content["h100-a"]["hosts"][node] |= {"lifecycle_start": "discovered", "service_import": OTHERS}
    path.write_text(yaml.safe_dump(content))


class BootServer:
    """`assay serve --boot` for one fleet, as a process."""

    def __init__(self, root: Path, port: int) -> None:
        self.root, self.port = root, port
        self.log = root / "boot.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url_of_machines(self) -> str:
        """The address from within qemu's own network."""
        return f"http://{HOST}:{self.port}"

    def start(self, *more: str) -> None:
        words = ["serve", *more, "--boot", "--host", "127.0.0.1", "--port", str(self.port), "--fleet", str(self.root)]
        with self.log.open("ab") as log:
            self.process = ForkedAssay([sys.executable, "-m", "assay", *words], stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while "listens on" not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE_S)

    def ask(self, path: str, body: bytes | None = None) -> bytes:
        with urllib.request.urlopen(f"{self.url}/boot/v1/{path}", body, timeout=PATIENCE_S) as answer:
            content: bytes = answer.read()
        return content


class BootRoom:
    """The lab, the server, and what the ledger says of starts."""

    def __init__(self, room: Room, server: BootServer) -> None:
        self.room, self.server = room, server

    def plug_in(self, node: str) -> None:
        """Make a node as new: it stands there with power, and DHCP leads it to the server at its next start."""
        self.room.fresh(node)
        self.room.change(node, lambda state: state.update(boot_server=self.server.url))

    def begin(self, node: str) -> EffectIntent:
        """Return the intent of a start, with what was true before."""
        intent = wish("netboot", node)
        before = netboot.before(self.room.context(), intent)
        return EffectIntent(f"netboot-{node}", "netboot", node, "d1", "a test wants it", before=before)

    def attempts(self, node: str) -> list[BootAttempt]:
        return list(fold_attempts(self.room.context().ledger.entries(node, BOOT_KINDS)).values())


@contextmanager
def open_boot_room(
    root: Path, new: Sequence[str] = (), more: Callable[[Path], None] = lambda _: None, **provisioning: Any
) -> Iterator[BootRoom]:
    """Yield the room. `new` nodes are as a delivery's inventory has them. `more` changes the fleet's files before."""
    (port,) = reserve_ports(1)

    def lay_out_site(folder: Path) -> None:
        lay_out_boot(folder, port, **provisioning)
        declare_new(folder, new)
        more(folder)

    with lab_room(root, RATE, lay_out_site) as room:
        server = BootServer(root, port)
        server.start()
        try:
            yield BootRoom(room, server)
        finally:
            server.stop()
