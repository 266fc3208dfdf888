"""Which check a shard judges at this moment, in a file that outlives the process.

After a crash, the run reads there what crashed. A write is a copy into mapped memory, which costs less than a
microsecond and needs no system call.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

NOTE_BYTES = 4096
_SIGNALLED, _SEPARATOR = b"signalled", "\0"


@dataclass(frozen=True, slots=True)
class JudgingNote:
    """What was judged when a process ended: a check and a subject, or a module that was imported (`subject` is "").

    `signalled`: a signal from outside ended the process in an orderly way, so the check may have no part in it.
    """

    check: str
    subject: str
    signalled: bool = False


class CurrentCheck:
    """Writes the note of one process. Raises OSError where the file cannot be written."""

    def __init__(self, store: Path) -> None:
        """`store` is the file of outcomes; the note lies beside it."""
        path = locate_note(store)
        path.write_bytes(bytes(NOTE_BYTES))  # written, not sparse: a full disk must show now, and not as a SIGBUS
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), NOTE_BYTES)

    def begin(self, check: str, subject: str = "") -> None:
        """Note that a check is judged now, or that a module is imported."""
        text = f"{check}{_SEPARATOR}{subject}{_SEPARATOR}".encode(errors="replace")[: NOTE_BYTES - len(_SIGNALLED) - 1]
        self._memory[: len(text) + 1] = text + b"\0"

    def end(self) -> None:
        """Note that it has ended."""
        self._memory[0] = 0

    def note_signal(self) -> None:
        """Note that a signal from outside ends the process during this check."""
        self._memory[NOTE_BYTES - len(_SIGNALLED) :] = _SIGNALLED


def locate_note(store: Path) -> Path:
    """Return the note's file for a file of outcomes."""
    return store.with_suffix(".now")


def read_note(store: Path) -> JudgingNote | None:
    """Return what a process that has ended was judging, None where it was between two checks."""
    try:
        content = locate_note(store).read_bytes()
    except OSError:
        return None
    check, subject, *_ = [*content.decode(errors="replace").split(_SEPARATOR, 2), ""]
    return JudgingNote(check, subject, content.endswith(_SIGNALLED)) if check else None
