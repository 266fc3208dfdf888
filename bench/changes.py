"""Uncommitted changes of a big fleet's files that affect every node."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

Change = Callable[[Path], None]

SPEC = Path("specs/nodes/hgx-h100.yaml")
BUNDLE = Path("specs/firmware/hgx-h100-2026-10.yaml")


def move_firmware(fleet: Path) -> None:
    """Change the driver and the BIOS version: two lines that affect every node."""
    _put(fleet / SPEC, r"(?m)^driver: .*$", "driver: 570.195.03")
    _put(fleet / BUNDLE, r'(?s)(- name: bios\n    version: )"[^"]*"', r'\1"2.7.9"')


def respecify(fleet: Path) -> None:
    """Give every pool another node spec: one inherited variable in every inventory file."""
    text = (fleet / SPEC).read_text().replace("name: hgx-h100\n", "name: hgx-h100-next\n")
    (fleet / SPEC).with_name("hgx-h100-next.yaml").write_text(text)
    _put(fleet / SPEC.with_name("hgx-h100-next.yaml"), r"(?m)^memory_gib: .*$", "memory_gib: 4096")
    _put(fleet / SPEC.with_name("hgx-h100-next.yaml"), r"size_gib: 64, speed_mts", "size_gib: 128, speed_mts")
    for file in sorted((fleet / "inventory").glob("*.yml")):
        _put(file, "node_spec: hgx-h100$", "node_spec: hgx-h100-next")


def replace_adapters(fleet: Path) -> None:
    """Give every adapter another GUID: a line for each rail of each node, so that every cable changes."""
    for file in sorted((fleet / "inventory").glob("*.yml")):
        file.write_text(file.read_text().replace('"0xa088c2', '"0xa088c3'))


def undo(fleet: Path) -> None:
    """Bring the fleet back to its commit."""
    for words in (["checkout", "--quiet", "--", "."], ["clean", "--quiet", "-fd"]):
        subprocess.run(["git", "-C", str(fleet), *words], check=True)


CHANGES: dict[str, Change] = {
    "firmware and driver": move_firmware,
    "another node spec": respecify,
    "other adapters": replace_adapters,
}


def _put(file: Path, pattern: str, text: str) -> None:
    """Replace the only match of a pattern. Raises RuntimeError if there is not exactly one."""
    changed, times = re.subn(pattern, text, file.read_text(), flags=re.MULTILINE)
    if times != 1:
        raise RuntimeError(f"{file}: {pattern!r} matches {times} times, not once")
    file.write_text(changed)
