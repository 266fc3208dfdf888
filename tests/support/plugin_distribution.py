"""A distribution from outside that brings plug-ins: one module and a dist-info folder with its entry points."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.forked_assay import run_assay


class PluginDistribution:
    """A folder on the import path of `assay`, as pip would leave it for the distribution `name`."""

    def __init__(self, folder: Path, name: str, entry_points: Mapping[str, Mapping[str, str]], **modules: str) -> None:
        self.folder = folder
        info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        groups = [
            "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in points.items())])
            for group, points in entry_points.items()
        ]
        (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
        for module, source in modules.items():
            (folder / f"{module}.py").write_text(source)

    def assay(self, *words: str, fleet: Path, exit_code: int = 0) -> str:
        """Run `assay` with the distribution installed; return what it prints."""
        path = os.pathsep.join([str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = run_assay(*words, "--fleet", fleet, env={**os.environ, "PYTHONPATH": path})
        assert done.returncode == exit_code, done.stdout + done.stderr
        return done.stdout + done.stderr
