"""What a format of recordings is: how to detect it, and how to read its branches of evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

BranchPath = tuple[str, str]
"""Channel and branch: `("probe", "gpu")`."""
Branches = Mapping[BranchPath, Any]


class RecordingError(ValueError):
    """The file has this format's beginning but cannot be read; the text says why."""


@dataclass(frozen=True)
class RecordingFormat:
    """One format. `detects` takes a whole file. `read` takes it and its time, and may raise RecordingError.

    `broken` is the branch that tells that the rest of the file is missing, None where the rest is needed.
    """

    name: str
    detects: Callable[[bytes], bool]
    read: Callable[[bytes, datetime], Branches]
    broken: BranchPath | None = None
