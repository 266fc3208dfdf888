"""Reads the text of a file that a fabric tool, a spreadsheet or a shell wrote."""

from __future__ import annotations

import io
import re
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.storage.evidence_objects import unpack_object

NO_TEXTS = (
    (rb"PK\x03\x04", "a workbook or another zip archive", "save the sheet as CSV, or unpack the archive"),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook", "save the sheet as CSV"),
    (rb"\s*<(?:!doctype html|html)", "a web page, such as a login page", "fetch it again with valid credentials"),
    (rb"%PDF-", "a PDF document", "give the text or the CSV that it was made from"),
    (rb"(?:\xfd7zXZ|BZh|\x28\xb5\x2f\xfd)", "a packed file", "unpack it first"),
)
"""How files begin that are no text of a fabric tool, what they are, and what to do."""


def read_dump(dump: Path) -> str:
    """Return the text of a file, or of stdin for "-", with line feeds as line ends.

    gzip and UTF-16 are read too. Raises AssayError for a file that cannot be read, or that is no text.
    """
    if str(dump) == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        return _decode(stdin.read(), "stdin") if stdin else sys.stdin.read()
    try:
        return _decode(dump.read_bytes(), str(dump))
    except OSError as error:
        raise AssayError(f"cannot read the discovery: {error.strerror}", where=str(dump)) from error


def _decode(content: bytes, where: str) -> str:
    try:
        content = unpack_object(content)
    except ValueError as error:
        raise AssayError(f"this gzip file cannot be read: {error}", where=where, fix="fetch it again") from None
    for start, what, fix in NO_TEXTS:
        if re.match(start, content, re.IGNORECASE):
            raise AssayError(f"this is {what}, and no text of a fabric tool", where=where, fix=fix)
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        text = content.decode("utf-16", errors="replace")
    else:
        text = content.decode(errors="replace")
    return io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True) if "\r" in text else text
