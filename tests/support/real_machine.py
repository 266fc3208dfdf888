"""Runs a machine in qemu: SeaBIOS and iPXE ask the boot server, and start the kernel that it gives them.

The image is built from the distribution's kernel and busybox; its first program does what cloud-init does first.
"""

from __future__ import annotations

import lzma
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from assay.act.boot.script import BOOT_PATH

CACHE = Path.home() / ".cache" / "assay" / "boot-kernel"
PACKAGE = "linux-image-cloud-amd64"
TOOLS = ("qemu-system-x86_64", "cpio", "busybox")
NETWORK_BOOT_ROMS = Path("/usr/lib/ipxe/qemu")
APPLETS = ("sh", "mount", "insmod", "ip", "udhcpc", "sed", "wget", "cat", "poweroff")
MODULES = (
    *("drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_legacy_dev"),
    *("drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci", "net/core/failover"),
    *("drivers/net/net_failover", "drivers/net/virtio_net"),
)
"""In the order in which they load."""
COMMAND_LINE_MARK = "assay-command-line: "
FIRST_PROGRAM = rf"""#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
for m in $(cat /modules); do insmod /$m.ko; done
ip link set eth0 up
udhcpc -q -n -i eth0 -s /dhcp.sh
data=$(sed -n 's/.*ds=nocloud[-net]*;s=\([^ ]*\).*/\1/p' /proc/cmdline)
wget -q -O /meta-data "${{data}}meta-data" && wget -q -O /user-data "${{data}}user-data" && cat /user-data
base=${{data%/data/*}}; attempt=${{data%/}}; attempt=${{attempt##*/}}
echo "asset tag $(cat /sys/class/dmi/id/chassis_asset_tag)"
said="serial $(cat /sys/class/dmi/id/product_serial)"
wget -q -O - --header 'Content-Type: application/json' --post-data "{{\"words\": \"$said\"}}" \
  "$base/attempts/$attempt/stages/cloud-init"
echo "{COMMAND_LINE_MARK}$(cat /proc/cmdline)"; poweroff -f
"""
DHCP_SCRIPT = """#!/bin/sh
case "$1" in bound|renew) ip addr add $ip/${mask:-24} dev $interface; ip route add default via $router;; esac
"""
HOST = "10.0.2.2"
"""This machine's own loopback, as a machine in qemu's user network sees it."""
LIMIT_S = 300.0


def find_obstacle() -> str:
    """Return why no machine can run here, "" if one can. The first call may fetch the distribution's kernel."""
    if platform.machine() != "x86_64":
        return f"iPXE's ROM of qemu is for x86_64, and this is {platform.machine()}"
    missing = [name for name in TOOLS if not shutil.which(name)]
    if missing or not NETWORK_BOOT_ROMS.is_dir():
        missing += [] if NETWORK_BOOT_ROMS.is_dir() else [str(NETWORK_BOOT_ROMS)]
        return f"{', '.join(missing)} not found: install qemu-system-x86, ipxe-qemu, busybox-static and cpio"
    return "" if find_kernel() else f"no kernel: `apt-get download {PACKAGE}` must work once"


def find_kernel() -> Path | None:
    """Return the folder of an unpacked kernel package of the distribution, fetched once; None without one."""
    if next(CACHE.glob("boot/vmlinuz-*"), None):
        return CACHE
    if not shutil.which("apt-get"):
        return None
    named = subprocess.run(["apt-cache", "depends", PACKAGE], check=False, capture_output=True, text=True)
    package = re.search(r"Depends: (linux-image-\S+)", named.stdout)
    if package is None:
        return None
    CACHE.mkdir(parents=True, exist_ok=True)
    fetched = subprocess.run(["apt-get", "download", package[1]], cwd=CACHE, check=False, capture_output=True)
    archive = next(CACHE.glob("*.deb"), None)
    if fetched.returncode or archive is None:
        return None
    subprocess.run(["dpkg", "-x", archive, CACHE], check=True)
    archive.unlink()
    return CACHE


def build_image(folder: Path) -> tuple[Path, Path]:
    """Return a kernel, and an initial RAM disk with the first program. `find_obstacle` must have found none."""
    packages = find_kernel()
    assert packages is not None, "find_obstacle says so before"
    root = folder / "root"
    for name in ("bin", "proc", "sys", "dev"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin" / "busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    for module in MODULES:
        target = root / f"{Path(module).name}.ko"
        source = next(packages.glob(f"**/kernel/{module}.ko*"))
        content = source.read_bytes()
        target.write_bytes(lzma.decompress(content) if source.suffix == ".xz" else content)
    (root / "modules").write_text("\n".join(Path(module).name for module in MODULES))
    for name, text in (("init", FIRST_PROGRAM), ("dhcp.sh", DHCP_SCRIPT)):
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    pack = ["cpio", "-o", "-H", "newc", "--quiet"]
    packed = subprocess.run(pack, cwd=root, input=names.encode(), check=True, capture_output=True)
    initrd = folder / "initrd"
    initrd.write_bytes(packed.stdout)
    return next(packages.glob("boot/vmlinuz-*")), initrd


class MachineIdentity(NamedTuple):
    """What a machine's firmware shows: the MAC address that it boots from, its serial number, its asset tag."""

    mac: str
    serial: str
    asset_tag: str = ""


def run_machine(
    folder: Path, server: str, identity: MachineIdentity, limit_s: float = LIMIT_S, more: Sequence[str] = ()
) -> str:
    """Let a machine start from `server` until it switches itself off. Return what its console showed.

    `more`: further arguments of qemu. Raises TimeoutExpired if it is still on after `limit_s`.
    """
    console = folder / f"console-{identity.mac.replace(':', '')}.log"
    command = ["qemu-system-x86_64", "-M", "pc,graphics=off", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256"]
    command += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{console}"]
    command += ["-netdev", f"user,id=n0,bootfile={server}{BOOT_PATH}/ipxe"]
    command += ["-device", f"virtio-net-pci,netdev=n0,mac={identity.mac},bootindex=1"]
    command += ["-smbios", f"type=1,manufacturer=assay,product=lab,serial={identity.serial}"]
    command += ["-smbios", f"type=3,asset={identity.asset_tag}", *more]
    subprocess.run(command, check=False, timeout=limit_s, capture_output=True)
    return console.read_text(errors="replace") if console.exists() else ""


def find_command_line(console: str) -> str:
    """Return the kernel's command line that the first program showed, "" if it did not come so far."""
    return console.rpartition(COMMAND_LINE_MARK)[2].splitlines()[0] if COMMAND_LINE_MARK in console else ""
