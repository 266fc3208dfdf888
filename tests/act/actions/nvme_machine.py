"""A machine in qemu with emulated NVMe drives: a real kernel, nvme-cli, smartctl, our probe and our Ansible module."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible

from tests.support.places import ROOT
from tests.support.real_machine import find_kernel

MODULE = ROOT / "playbooks/collections/ansible_collections/assay/fleet/plugins/modules/drive_wipe.py"
PYTHON_HOME = Path(sys.base_prefix)
STDLIB = Path(f"lib/python{sys.version_info.major}.{sys.version_info.minor}")
LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "test", "tests", "__pycache__", "idlelib", "tkinter", "config-*", "*.a"
)
ANSWER = "node-answers: "
LIMIT_S = 1200.0
KERNEL_ARGUMENTS = "console=ttyS0 quiet panic=-1 no_timer_check"
"""On a busy machine, an emulated timer may be late for the kernel's check of it, which would end in a panic."""
INIT = """#!/bin/sh
export PATH=/bin:/usr/sbin:/usr/bin PYTHONHOME={home} PYTHONPATH=/src:/ansible PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
{python} /program.py
poweroff -f
"""


def find_obstacle() -> str:
    """Return why no such machine can run here, "" if one can."""
    missing = [
        name for name in ("qemu-system-x86_64", "cpio", "busybox", "nvme", "smartctl", "ldd") if not shutil.which(name)
    ]
    return f"{', '.join(missing)} not found" if missing else "" if find_kernel() else "no kernel of the distribution"


def run_program(folder: Path, program: str, drives: Mapping[str, Path]) -> list[Any]:
    """Run a Python program as root in the machine, and return what it said in lines that begin with ANSWER, from JSON.

    `drives`: the image of each drive, by serial number.
    """
    root, python = folder / "root", _lay_out_root(folder / "root")
    (root / "program.py").write_text(program)
    (root / "init").write_text(INIT.format(home=PYTHON_HOME, python=python))
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    pack = ["cpio", "-o", "-H", "newc", "--quiet"]
    with (folder / "initrd").open("wb") as initrd:
        subprocess.run(pack, cwd=root, input=names.encode(), check=True, stdout=initrd)
    console = folder / "console.log"
    kernel = next((find_kernel() or folder).glob("boot/vmlinuz-*"))
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1024", "-nodefaults"]
    command += ["-display", "none", "-no-reboot", "-serial", f"file:{console}"]
    command += [
        "-kernel",
        str(kernel),
        "-initrd",
        str(folder / "initrd"),
        "-append",
        "console=ttyS0 quiet panic=-1 no_timer_check",
    ]
    for number, (serial, image) in enumerate(drives.items()):
        command += ["-drive", f"file={image},if=none,id=d{number},format=raw"]
        command += ["-device", f"nvme,serial={serial},drive=d{number}"]
    subprocess.run(command, check=False, timeout=LIMIT_S, capture_output=True)
    said = console.read_text(errors="replace")
    answers = [json.loads(line.removeprefix(ANSWER)) for line in said.splitlines() if line.startswith(ANSWER)]
    assert answers, said
    return answers


def _lay_out_root(root: Path) -> str:
    """Lay out the machine's first files, and return its Python."""
    for name in ("bin", "usr/sbin", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", root / "bin" / "busybox")
    for applet in ("sh", "mount", "poweroff", "mkswap", "swapon"):
        (root / "bin" / applet).symlink_to("busybox")
    python = PYTHON_HOME / "bin" / STDLIB.name
    libraries = PYTHON_HOME / STDLIB
    tools = [Path(shutil.which(name) or "") for name in ("nvme", "smartctl")]
    _copy(root, python, *tools, *(libraries / "lib-dynload").glob("*.so"))
    shutil.copytree(libraries, root / str(libraries).lstrip("/"), ignore=LEFT_OUT, dirs_exist_ok=True)
    for package in ("model", "node"):
        shutil.copytree(ROOT / "src/assay" / package, root / "src/assay" / package, ignore=LEFT_OUT)
    shutil.copy(ROOT / "src/assay/__init__.py", root / "src/assay")
    shutil.copytree(Path(ansible.__file__).parent, root / "ansible/ansible", ignore=LEFT_OUT)
    shutil.copy(MODULE, root)
    return str(python)


def _copy(root: Path, *programs: Path) -> None:
    """Copy programs, and the libraries that they load, to the same places."""
    files = set(programs)
    for program in programs:
        needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        files |= {Path(found) for found in re.findall(r"(/\S+) \(0x", needed)}
    for file in files:
        target = root / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
