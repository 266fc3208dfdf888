"""Which revision of the fleet repository this is."""

from __future__ import annotations

import subprocess
from pathlib import Path

DECLARED = ("inventory", "specs", "suites", "playbooks")
CAREFUL = ("--no-optional-locks", "-c", "core.fsmonitor=false")  # a look takes no lock and runs no hook


def revision(root: Path) -> tuple[str, bool]:
    """Return the commit and whether what the repository declares differs from it. No git: `("", False)`."""
    command = ["git", "-C", str(root), *CAREFUL, "status", "--porcelain=v2", "--branch", "--", *DECLARED]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return "", False
    lines = run.stdout.splitlines() if run.returncode == 0 else []
    commit = next((line.removeprefix("# branch.oid ") for line in lines if line.startswith("# branch.oid ")), "")
    if commit == "(initial)":
        commit = ""
    return commit, any(not line.startswith("#") for line in lines)
