"""Reads the text of a file that a fabric tool, a spreadsheet or a shell wrote."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.text.packed_text import ByteSource, UnpackingError, read_text

NO_TEXTS = (
    (r"PK\x03\x04", "a workbook or another zip archive", "save the sheet as CSV, or unpack the archive"),
    ("\ufffd\ufffd\x11\u0871\x1a", "an old Excel workbook", "save the sheet as CSV"),
    (r"\s*<(?:!doctype html|html)", "a web page, such as a login page", "fetch it again with valid credentials"),
    (r"%PDF-", "a PDF document", "give the text or the CSV that it was made from"),
)
"""How files, read as UTF-8, begin that are no text of a fabric tool, what they are, and what to do."""


def read_dump(dump: Path) -> str:
    """Return the text of a file, or of stdin for "-", with line feeds as line ends.

    Packed files and UTF-16 are read too. Raises AssayError for a file that cannot be read, or that is no text.
    """
    if str(dump) == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        return _decode(stdin, "stdin") if stdin else sys.stdin.read()
    try:
        with dump.open("rb", buffering=0) as file:
            return _decode(file, str(dump))
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror or error}", where=str(dump)) from error


def _decode(file: ByteSource, where: str) -> str:
    try:
        text = read_text(file)
    except UnpackingError as error:
        raise AssayError(f"this file cannot be unpacked: {error}", where=where, fix="fetch it again") from None
    for start, what, fix in NO_TEXTS:
        if re.match(start, text, re.IGNORECASE):
            raise AssayError(f"this is {what}, and no text of a fabric tool", where=where, fix=fix)
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True) if "\r" in text else text
