"""Reads any log that is known: finds out what it is, and yields what it says of interest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from assay.model.errors import Trouble
from assay.model.recognise import Recogniser
from assay.observe.logs import entries, kernel, sel
from assay.observe.logs.forms import BARE, FORMS, Form, form_of
from assay.observe.logs.message import Message, Tally

SAMPLE = 200  # lines by which a log is told
LARGEST = 256 * 1024 * 1024  # bytes of a Redfish document
KNOWN = ", ".join(["ipmitool sel list", "a Redfish LogEntryCollection", *(form.name for form in FORMS)])


class Log:
    """A log that is read once. `tally` counts while `messages` is drawn from. Raises Trouble for what is no log.

    `of_bmc`: its messages are a BMC's events, and no kernel's lines.
    """

    def __init__(self, read: kernel.Read, recogniser: Recogniser, before: datetime, where: str) -> None:
        self.tally, self.of_bmc = Tally(), False
        self._read, self._recogniser, self._before, self._where = read, recogniser, before, where

    def messages(self) -> Iterator[Message]:
        """Yield what the log says of interest, in its order."""
        pieces = kernel.chunks(self._read)
        first = next(pieces, b"")
        lines = [line for line in first.splitlines() if line.strip()][:SAMPLE]
        if not lines:
            return
        if sum(map(sel.is_sel, lines)) * 2 > len(lines):
            self.of_bmc = True
            yield from sel.messages(_text(chain([first], pieces)), self.tally)
        elif (form := form_of(lines)) is not None:
            yield from self._kernel(form, chain([first], pieces))
        elif first.lstrip()[:1] in (b"{", b"["):
            self.of_bmc = True
            yield from entries.messages(self._entries(first + b"".join(_bounded(pieces))), self.tally)
        else:
            yield from self._kernel(self._bare(lines), chain([first], pieces))

    def _kernel(self, form: Form, pieces: Iterable[bytes]) -> Iterator[Message]:
        return kernel.messages(form, self._recogniser, pieces, self._before, self.tally)

    def _entries(self, content: bytes) -> list[Any]:
        try:
            found = entries.entries_in(json.loads(content))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            raise self._strange()
        return found

    def _bare(self, lines: list[bytes]) -> Form:
        """Return the form without any stamps, if a message of interest is there to believe it by."""
        texts = (line.decode(errors="replace") for line in lines)
        if not any(map(self._recogniser.in_message, texts)):
            raise self._strange()
        return BARE

    def _strange(self) -> Trouble:
        return Trouble("is no log that I can read", where=self._where, fix=f"known are: {KNOWN}")


def _text(pieces: Iterator[bytes]) -> Iterator[str]:
    for piece in pieces:
        yield from piece.decode(errors="replace").splitlines()


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST:
            return
        yield piece
