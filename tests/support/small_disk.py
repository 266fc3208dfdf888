"""A disk of a few megabytes for one program: a tmpfs in a mount namespace of its own, which nobody else sees."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support.places import ROOT

MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'


def run_on_small_disk(disk: Path, size: str, *words: object) -> str:
    """Run Python with these words while a disk of that size lies on the folder `disk`; return what it says.

    It finds the modules of the tests: `tests.support.ballast` fills the disk.
    """
    if not _allowed():
        pytest.skip("needs mount namespaces: run as root, or allow user namespaces (kernel.unprivileged_userns_clone)")
    disk.mkdir()
    command = [*_apart(), "sh", "-c", MOUNT, "sh", size, str(disk), sys.executable, *map(str, words)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _apart() -> list[str]:
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


@cache
def _allowed() -> bool:
    try:
        tried = subprocess.run(
            [*_apart(), "sh", "-c", "mount -t tmpfs tmpfs /tmp"], capture_output=True, check=False, timeout=60
        )
    except OSError:
        return False
    return tried.returncode == 0
