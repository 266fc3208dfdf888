"""The streams to which every verb prints: no control character reaches a terminal, a file or a pipe by them."""

from __future__ import annotations

import io
import sys
from typing import TextIO

from assay.model.text.printable_text import escape_all_but_styles, escape_controls

_REPLACED = {"strict": "backslashreplace"}


class PrintableOutput(io.TextIOWrapper):
    """A text stream that escapes control characters. On a terminal, colours pass."""

    def write(self, text: str) -> int:
        """Write a text with its control characters escaped."""
        super().write(escape_all_but_styles(text) if self.isatty() else escape_controls(text))
        return len(text)

    def close(self) -> None:
        """Write out what is left. The stream below stays open: it belongs to whoever started this process."""
        self.flush()


def escape_standard_streams() -> None:
    """Let everything that this process prints from now on be printable."""
    sys.stdout, sys.stderr = _wrap(sys.stdout), _wrap(sys.stderr)


def _wrap(stream: TextIO) -> TextIO:
    if not hasattr(stream, "buffer"):  # nobody looks, or a test does
        return stream
    stream.flush()
    errors = _REPLACED.get(stream.errors or "strict", stream.errors)
    return PrintableOutput(
        stream.buffer,
        encoding=stream.encoding,
        errors=errors,
        line_buffering=bool(stream.line_buffering),
        write_through=True,
    )
