"""What machines boot by: scripts of iPXE and GRUB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from assay.model.specs.image import ATTEMPT, IMAGE, Image

BOOT_PATH = "/boot/v1"
QUESTION = "script?mac=${netX/mac}&serial=${serial:uristring}&uuid=${uuid}"


@dataclass(frozen=True, slots=True)
class BootOrder:
    """What one machine boots: the node's name, its image, and the address of the server without a slash at the end.

    `attempt`: names this start in what the node reports. `arguments_of_spec`: the node spec's `kernel_cmdline`.
    """

    node: str
    image: Image
    url: str
    attempt: str
    arguments_of_spec: Sequence[str] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments of the kernel: the image's own, then those that lead the node to its data."""
        data = f"{self.url}{BOOT_PATH}/data/{quote(self.attempt, safe='')}/"
        initrds = [f"initrd={name}" for name in self.image.artifacts if name.startswith("initrd")]
        root = self.image.root
        disk = [f"assay.root={self.locate('root')}", f"assay.root_sha256={root.sha256}"] if root else []
        named = [f"{ATTEMPT}={self.attempt}", f"{IMAGE}={self.image.label}"]
        source = f"ds={self.image.data_source};s={data}"
        return [*initrds, *self.image.arguments, *self.arguments_of_spec, *disk, *named, source]

    def locate(self, artifact: str) -> str:
        """Return the URL of a file of the image. It names the digest, so that no cache gives out an older file."""
        return f"{self.url}{BOOT_PATH}/images/{self.image.artifacts[artifact].sha256}/{artifact}"


def render_boot_script(order: BootOrder) -> str:
    """Return the iPXE script. With signatures, iPXE starts only what it has verified."""
    started = [name for name in order.image.artifacts if name != "root"]
    lines = ["#!ipxe", f"echo assay: {order.node} boots {order.image.name} ({order.image.version})"]
    for name in started:
        arguments = f" {' '.join(order.arguments)}" if name == "kernel" else ""
        lines.append(f"{name.rstrip('0123456789')} --name {name} {order.locate(name)}{arguments} || goto failed")
    if order.image.signed_by:
        lines += [f"imgverify {name} {order.locate(name)}.sig || goto failed" for name in started]
    lines += ["boot || goto failed", ":failed", "echo assay: the boot failed, once more in 30 s", "sleep 30", "reboot"]
    return "\n".join(lines) + "\n"


def render_grub_config(order: BootOrder) -> str:
    """Return the same start for GRUB. It cannot verify the signatures of an image: then nothing boots."""
    if order.image.signed_by:
        return render_grub_wait(f"image {order.image.name} is signed for iPXE, and GRUB cannot verify that", 600)
    host, files = order.url.partition("://")[2], order.image.artifacts
    paths = {name: f"(http,{host}){BOOT_PATH}/images/{files[name].sha256}/{name}" for name in files if name != "root"}
    initrds = " ".join(path for name, path in paths.items() if name != "kernel")
    # GRUB's shell takes a quoted word as it is
    words = [word.replace("'", "'\\''") for word in order.arguments if not word.startswith("initrd=")]
    arguments = " ".join(f"'{word}'" for word in words)
    lines = ["insmod http", f"echo 'assay: {order.node} boots {order.image.name} ({order.image.version})'"]
    lines += [f"linux {paths['kernel']} {arguments}", *([f"initrd {initrds}"] if initrds else []), "boot"]
    return "\n".join(lines) + "\n"


def render_grub_wait(reason: str, pause_s: float) -> str:
    """Return a GRUB configuration that shows why this machine boots nothing, waits, and starts the machine again."""
    return f"echo 'assay: {_as_words(reason)}'\nsleep {math.ceil(pause_s)}\nreboot\n"


def render_first_script(server: str) -> str:
    """Return the script that a DHCP server names: it tells `server` (`http://HOST:PORT`) which machine asks."""
    return f"#!ipxe\n{_ask(server)}\n"


def render_wait_script(server: str, reason: str, pause_s: float) -> str:
    """Return an iPXE script that shows people why this machine boots nothing, waits, and asks `server` once more."""
    lines = ["#!ipxe", f"echo assay: {_as_words(reason)}", "echo this machine: ${netX/mac} serial ${serial}"]
    return "\n".join([*lines, f"sleep {math.ceil(pause_s)}", _ask(server)]) + "\n"


def _ask(server: str) -> str:
    return f"chain --replace {server}{BOOT_PATH}/{QUESTION} || reboot"


def _as_words(text: str) -> str:
    """Return a text that is no command of iPXE, whatever a machine has called itself."""
    return "".join(char if char.isalnum() or char in " .,:;()_-/" else "?" for char in text)
