"""A file of a fabric tool is read as shells and people save it; anything else is named for what it is."""

import gzip
import io

import pytest

from assay.cli.fabric.dump_file import read_dump
from assay.model.errors import AssayError

TEXT = '[1]\t"H-00a0"[1]\t# "größe"\n'


@pytest.mark.parametrize(
    "content",
    [TEXT.encode(), TEXT.replace("\n", "\r\n").encode(), TEXT.encode("utf-16"), gzip.compress(TEXT.encode())],
    ids=["plain", "line ends of DOS", "PowerShell's redirection", "gzip"],
)
def test_a_saved_text_is_read(tmp_path, content):
    file = tmp_path / "fabric"
    file.write_bytes(content)
    assert read_dump(file) == TEXT


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04rest", "a workbook"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"%PDF-1.7", "a PDF document"),
        (gzip.compress(TEXT.encode())[:-6], "this gzip file cannot be read"),
    ],
    ids=["workbook", "login page", "PDF", "cut gzip"],
)
def test_a_file_that_is_no_text_is_named_for_what_it_is(tmp_path, content, what):
    file = tmp_path / "sheet.xlsx"
    file.write_bytes(content)
    with pytest.raises(AssayError, match=what) as refused:
        read_dump(file)
    assert refused.value.fix


def test_stdin_is_decoded_like_a_file(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode("utf-16"))))
    assert read_dump(tmp_path.__class__("-")) == TEXT
