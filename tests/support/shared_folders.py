"""Gives the files of some folders to one worker of xdist: they share what is dear to make, once for a process."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

SHARED_FOLDERS = (
    "tests/act/actions",  # a lab
    "tests/architecture",  # the parsed source
    "tests/act/boot",  # a lab and a boot server
    "tests/act/schedules",  # a lab
    "tests/lab/bmc",  # virtual BMCs
    "tests/lab/node",  # a virtual data hall
    "tests/ledger",  # a PostgreSQL server
    "tests/adapters/slurm",  # a Slurm cluster
)


def find_work_unit(nodeid: str) -> str:
    """Return what a test is handed out with: its shared folder or its file."""
    file = nodeid.partition("::")[0]
    folders = {folder.as_posix() for folder in Path(file).parents}
    return next((folder for folder in SHARED_FOLDERS if folder in folders), file)


class FolderScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Hands out files and shared folders. `_split_scope` is private: pyproject.toml limits the version of xdist."""

    def _split_scope(self, nodeid: str) -> str:
        return find_work_unit(nodeid)
