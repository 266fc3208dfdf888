"""A real machine in qemu: SeaBIOS and iPXE start a real kernel, whose first program does what cloud-init would."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

CACHE = Path.home() / ".cache" / "assay" / "boot-kernel"
NEEDED = ("qemu-system-x86_64", "cpio", "busybox")
BOOT_ROM = Path("/usr/lib/ipxe/qemu")
MODULES = (
    "drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci", "net/core/failover",
    "drivers/net/net_failover", "drivers/net/virtio_net",
)  # fmt: skip
"""In the order in which they load."""
FIRST_PROGRAM = r"""#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
for m in $(cat /modules); do insmod /$m.ko; done
ip link set eth0 up
udhcpc -q -n -i eth0 -s /dhcp.sh
data=$(sed -n 's/.*ds=nocloud;s=\([^ ]*\).*/\1/p' /proc/cmdline)
wget -q -O /meta-data "${data}meta-data" && wget -q -O /user-data "${data}user-data" && cat /user-data
base=${data%/data/*}; attempt=${data%/}; attempt=${attempt##*/}
said="serial $(cat /sys/class/dmi/id/product_serial), tag $(cat /sys/class/dmi/id/chassis_asset_tag)"
wget -q -O - --header 'Content-Type: application/json' --post-data "{\"words\": \"$said\"}" \
  "$base/attempts/$attempt/stages/cloud-init"
echo "first program ends"; poweroff -f
"""
DHCP_SCRIPT = """#!/bin/sh
case "$1" in bound|renew) ip addr add $ip/${mask:-24} dev $interface; ip route add default via $router;; esac
"""


def find_obstacle() -> str:
    """Return why no machine can run here, "" if one can."""
    if platform.machine() != "x86_64":
        return f"iPXE's ROM of qemu is for x86_64, and this is {platform.machine()}"
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or not BOOT_ROM.is_dir():
        return f"install qemu-system-x86, ipxe-qemu, busybox-static and cpio (`make system`): {missing or [BOOT_ROM]}"
    return "" if find_kernel() else "no kernel: apt-get download linux-image-cloud-amd64 must work once"


def find_kernel() -> Path | None:
    """Return the folder of an unpacked kernel package of the distribution, fetched once; None without one."""
    if next(CACHE.glob("boot/vmlinuz-*"), None):
        return CACHE
    if not shutil.which("apt-get"):
        return None
    named = subprocess.run(
        ["apt-cache", "depends", "linux-image-cloud-amd64"], check=False, capture_output=True, text=True
    )
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
    """Return a kernel, and an initial RAM disk with our first program."""
    kernel_folder = find_kernel()
    assert kernel_folder is not None
    kernel = next(kernel_folder.glob("boot/vmlinuz-*"))
    root = folder / "root"
    for name in ("bin", "proc", "sys", "dev"):
        (root / name).mkdir(parents=True)
    busybox = Path(shutil.which("busybox") or "")
    shutil.copy(busybox, root / "bin" / "busybox")
    for applet in ("sh", "mount", "insmod", "ip", "udhcpc", "sed", "wget", "cat", "poweroff"):
        (root / "bin" / applet).symlink_to("busybox")
    for module in MODULES:
        source = next(kernel_folder.glob(f"**/kernel/{module}.ko*"))
        target = root / Path(module).with_suffix(".ko").name
        target.write_bytes(_unpack(source))
    (root / "modules").write_text("\n".join(Path(module).name for module in MODULES))
    for name, text in (("init", FIRST_PROGRAM), ("dhcp.sh", DHCP_SCRIPT)):
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    packed = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names.encode(), check=True, capture_output=True
    )
    initrd = folder / "initrd"
    initrd.write_bytes(packed.stdout)
    return kernel, initrd


def _unpack(source: Path) -> bytes:
    if source.suffix == ".xz":
        import lzma

        return lzma.decompress(source.read_bytes())
    return source.read_bytes()


def run_machine(folder: Path, url: str, mac: str, serial: str, tag: str = "", seconds: int = 300) -> str:
    """Let a machine boot until it switches itself off, or its time is over. Return what its console shows."""
    console = folder / f"console-{mac.replace(':', '')}.log"
    command = [
        "qemu-system-x86_64", "-M", "pc,graphics=off", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-m", "256", "-nodefaults",
        "-display", "none", "-no-reboot", "-serial", f"file:{console}",
        "-netdev", f"user,id=n0,bootfile={url}/boot/v1/ipxe",
        "-device", f"virtio-net-pci,netdev=n0,mac={mac},bootindex=1",
        "-smbios", f"type=1,manufacturer=assay,product=test,serial={serial}",
        "-smbios", f"type=3,asset={tag}",
    ]  # fmt: skip
    subprocess.run(command, check=False, timeout=seconds, capture_output=True)
    return console.read_text(errors="replace") if console.exists() else ""
