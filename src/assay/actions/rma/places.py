"""Where dossiers lie: it follows from the node and from the effect that asked for one."""

from __future__ import annotations

from pathlib import Path


def archive_of(reports: Path, node: str, effect: str) -> Path:
    """Return where the dossier of an effect lies."""
    return reports / "rma" / f"{node}-{effect}.zip"


def photos_of(reports: Path, node: str, effect: str) -> Path:
    """Return the folder into which a technician puts the photos."""
    return reports / "rma" / f"{node}-{effect}.photos"
