"""What a format of recordings is: how it shows, and the branches of evidence that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Place = tuple[str, str]
"""Channel and branch: `("probe", "gpu")`."""
Branches = Mapping[Place, Any]


class NotThis(ValueError):
    """The file begins as this format does, but is not whole; the text says what is wrong."""


@dataclass(frozen=True)
class Form:
    """`shows` looks at a whole file; `read` takes it and the time of the recording. Raises NotThis."""

    name: str
    shows: Callable[[bytes], bool]
    read: Callable[[bytes, datetime], Branches]
