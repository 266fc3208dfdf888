"""What a format of recordings is: how it shows, and the branches of evidence that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

BranchPath = tuple[str, str]
"""Channel and branch: `("probe", "gpu")`."""
Branches = Mapping[BranchPath, Any]


class RecordingError(ValueError):
    """The file begins as this format does, but is not whole; the text says what is wrong."""


@dataclass(frozen=True)
class RecordingFormat:
    """`shows` looks at a whole file; `read` takes it and the time of the recording. Raises NotThis."""

    name: str
    detects: Callable[[bytes], bool]
    read: Callable[[bytes, datetime], Branches]
