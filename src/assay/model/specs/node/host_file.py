"""A file that a node spec declares: what a host must have at a path."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import AfterValidator, Field

from assay.model.specs.spec_document import StrictModel

MAX_CONTENT = 64 * 1024
KERNEL_FOLDERS = ("/dev/", "/proc/", "/sys/")


def _require_plain_path(path: str) -> str:
    """Refuse paths that lead elsewhere than they say, and files of the kernel."""
    if {"", ".", ".."} & set(path.split("/")[1:]) or path.startswith(KERNEL_FOLDERS):
        raise ValueError(f"{path!r} is no path of a file on disk: write it without `.`, `..` and double slashes")
    return path


HostFilePath = Annotated[str, Field(pattern=r"^/[\w.@+/-]+$"), AfterValidator(_require_plain_path)]


class HostFile(StrictModel):
    """A file on the host. It holds no secrets: the spec is in git.

    `content`: its whole text. `mode`: its permissions, octal. `validate_with`: a command that must accept the new text
    before the file is replaced; `%s` is a file with the text. `apply_with`: a command that runs after a change, such as
    `systemctl restart slurmd`. If it fails, the old file is put back. No shell runs these commands.
    """

    content: str = Field(max_length=MAX_CONTENT)
    mode: str = Field(default="0644", pattern=r"^0[0-7]{3}$")
    validate_with: str | None = Field(default=None, pattern=r"%s")
    apply_with: str | None = Field(default=None, min_length=1)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, as the probe reads it."""
        return hashlib.sha256(self.content.encode()).hexdigest()
