"""Tells git of a conflict, as `git merge` does: `git status` and `git mergetool` know it, and `git commit` waits."""

from __future__ import annotations

import os
from collections.abc import Sequence

from assay.declare.starter.site_files import SiteFiles

STAGES = (1, 2, 3)
"""git's numbers for base, ours and theirs."""


def mark_conflict(site: SiteFiles, path: str, sides: Sequence[bytes | None]) -> None:
    """Put base, ours and theirs of a conflict into the index. A side that is None is left out."""
    prefix = site.run_git("rev-parse", "--show-prefix").strip("\n")
    mode = "100755" if os.access(site.root / path, os.X_OK) else "100644"
    blobs = ["" if side is None else _store(site, path, side) for side in sides]
    nothing = "0" * max(map(len, blobs))
    lines = [f"0 {nothing}\t{prefix}{path}"]
    lines += [f"{mode} {blob} {stage}\t{prefix}{path}" for stage, blob in zip(STAGES, blobs, strict=True) if blob]
    site.run_git("update-index", "-z", "--index-info", stdin="".join(f"{line}\0" for line in lines).encode())


def _store(site: SiteFiles, path: str, content: bytes) -> str:
    return site.run_git("hash-object", "-w", "--stdin", f"--path={path}", stdin=content).strip()
