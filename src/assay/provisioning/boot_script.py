"""The script that a machine's iPXE runs: which kernel, with which initial RAM disks and arguments."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from assay.model.provisioning.image_spec import Image

BOOT_PATH = "/boot/v1"


@dataclass(frozen=True, slots=True)
class BootOrder:
    """What one machine boots: the node's name, its image, and the address of the server without a slash at the end.

    `attempt`: names this start in what the node reports.
    """

    node: str
    image: Image
    url: str
    attempt: str

    @property
    def arguments(self) -> list[str]:
        """The arguments of the kernel: the image's own, then those that lead the node to its data."""
        data = f"{self.url}{BOOT_PATH}/data/{quote(self.attempt, safe='')}/"
        initrds = [f"initrd={name}" for name in self.image.artifacts if name.startswith("initrd")]
        root = self.image.root
        disk = [f"assay.root={self.locate('root')}", f"assay.root_sha256={root.sha256}"] if root else []
        return [*initrds, *self.image.arguments, *disk, f"assay.attempt={self.attempt}", f"ds=nocloud;s={data}"]

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
