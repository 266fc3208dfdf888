"""The module assay.fleet.host_files, run by the real ansible: a file is brought whole, or the old one comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT

COLLECTIONS = ROOT / "playbooks" / "collections"


def bring(root: Path, files: dict[str, dict[str, Any]], *options: str) -> str:
    """Run the module as a person would, on this machine, below `root`. Return what it printed."""
    program = Path(sys.executable).parent / "ansible"
    words = ["localhost", "-c", "local", "-m", "assay.fleet.host_files", "-a", json.dumps({"files": files}), *options]
    environment = os.environ | {
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_HOME": str(root / "ansible"),
        "ASSAY_ROOT": str(root),
    }
    words += ["-e", f"ansible_python_interpreter={sys.executable}"]
    done = subprocess.run([program, *words], cwd=root, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_file_is_shown_then_brought_then_left_alone(tmp_path: Path):
    applied = tmp_path / "applied"
    files = {"/etc/x.d/a.conf": {"content": "new\n", "mode": "0600", "apply_with": f"sh -c 'echo x >> {applied}'"}}
    there = tmp_path / "etc/x.d/a.conf"
    assert "+new" in bring(tmp_path, files, "--check", "--diff")
    assert not there.exists()
    assert "CHANGED" in bring(tmp_path, files)
    assert (there.read_text(), there.stat().st_mode & 0o777) == ("new\n", 0o600)
    assert "SUCCESS" in bring(tmp_path, files)
    assert applied.read_text() == "x\n"


@pytest.mark.slow
def test_a_file_that_is_refused_or_cannot_be_applied_leaves_the_old_one(tmp_path: Path):
    there = tmp_path / "etc/a.conf"
    there.parent.mkdir()
    there.write_text("old\n")
    refused = {"/etc/a.conf": {"content": "new\n", "mode": "0644", "validate_with": "grep -q good %s"}}
    assert "is refused by grep" in bring(tmp_path, refused)
    broken = {
        "/etc/a.conf": {"content": "new\n", "mode": "0644", "apply_with": f"grep -q old {there}"},
        "/etc/b.conf": {"content": "new\n", "mode": "0644", "apply_with": "false"},
    }
    assert "so the file before is back" in bring(tmp_path, broken)
    assert there.read_text() == "old\n"
    assert "so the file before is back" in bring(tmp_path, {"/etc/b.conf": broken["/etc/b.conf"]})
    assert sorted(path.name for path in there.parent.iterdir()) == ["a.conf"]
