"""A small fleet repository whose nodes serve already, each in a rack of its own: to be brought up in the lab."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import yaml

from tests.support.places import ROOT

FOLDERS = ("specs", "suites", "playbooks")
POLICY, BUNDLE = "specs/lifecycle/default.yaml", "specs/firmware/hgx-h100-2026-10.yaml"
GIT = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


def make_serving_fleet(root: Path, names: Collection[str]) -> None:
    """Make a fleet of these nodes, all in pool `a`, with the specs of this repository and no fabric."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "fabrics"))
    shutil.copy(ROOT / "ansible.cfg", root)
    start = {"nodes": list(names), "reason": "they serve", "expires": "2999-01-01"}
    variables = {"node_spec": "hgx-h100", "profile": "managed", "site": "lab1", "service_import": start}
    hosts = {name: _make_host(number) for number, name in enumerate(names, 1)}
    (root / "inventory").mkdir()
    (root / "inventory" / "a.yml").write_text(yaml.safe_dump({"a": {"vars": variables, "hosts": hosts}}))


def change_yaml(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a YAML file in place, for example the policy."""
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def start_history(root: Path) -> None:
    """Make the fleet a git repository with one commit."""
    (root / ".gitignore").write_text(".assay/\n.assay-*\nreports/\n__pycache__/\n")
    subprocess.run([*GIT, "init", "--quiet"], cwd=root, check=True)
    commit_all(root)


def commit_all(root: Path) -> None:
    """Commit every change of the fleet, as a merge does."""
    subprocess.run([*GIT, "add", "--all"], cwd=root, check=True)
    subprocess.run([*GIT, "commit", "--quiet", "--message", "change"], cwd=root, check=True)


def merge_bmc_image(root: Path, version: str) -> None:
    """Commit a bundle with another version of the BMC. The lab makes its image."""
    change_yaml(root / BUNDLE, lambda bundle: bundle["components"][0].update(version=version))
    commit_all(root)


def _make_host(number: int) -> dict[str, Any]:
    high, low = divmod(number, 256)
    guids = [f"0xa088c20401{rail:02x}{high:02x}{low:02x}" for rail in range(8)]
    place = {"rack": f"r{number}", "u": 1, "serial_number": f"S{number:04}", "bmc_address": f"198.18.{high}.{low}"}
    return {**place, "hca_guids": guids}
