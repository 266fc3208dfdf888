"""A file of a fabric tool is read as shells and people save it; anything else is named for what it is."""

import gzip
import io

import pytest

from assay.cli.verbs.fabric_learn import read_dump
from assay.model.errors import AssayError
from tests.support.log_spellings.carriers import COMPRESSIONS, ENCODINGS

TEXT = '[1]\t"H-00a0"[1]\t# "größe"\n'


@pytest.mark.parametrize(
    "content",
    [TEXT.encode(), TEXT.replace("\n", "\r\n").encode(), gzip.compress(TEXT.encode())],
    ids=["plain", "line ends of DOS", "gzip"],
)
def test_a_saved_text_is_read(tmp_path, content):
    file = tmp_path / "fabric"
    file.write_bytes(content)
    assert read_dump(file) == TEXT


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("packing", COMPRESSIONS)
def test_a_packed_text_is_read_in_every_encoding(tmp_path, packing, encoding):
    file = tmp_path / "fabric"
    file.write_bytes(COMPRESSIONS[packing](ENCODINGS[encoding](TEXT)))
    assert read_dump(file) == TEXT


@pytest.mark.parametrize("packing", sorted(set(COMPRESSIONS) - {"plain"}))
def test_a_packed_file_that_is_cut_or_damaged_is_refused(tmp_path, packing):
    packed = COMPRESSIONS[packing](TEXT.encode() * 500)
    (tmp_path / "cut").write_bytes(packed[:-5])
    (tmp_path / "damaged").write_bytes(packed[: len(packed) // 2] + b"\xff" * 16 + packed[len(packed) // 2 :])
    with pytest.raises(AssayError, match=f"cannot be unpacked: its {packing} data break off") as refused:
        read_dump(tmp_path / "cut")
    assert refused.value.fix
    with pytest.raises(AssayError, match=f"cannot be unpacked: its {packing} data "):
        read_dump(tmp_path / "damaged")


def test_a_small_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("assay.model.text.packed_text.MAX_TEXT_BYTES", 2**20)
    (tmp_path / "bomb").write_bytes(gzip.compress(b"#" * 2**21))
    with pytest.raises(AssayError, match="it holds more than 1 MiB"):
        read_dump(tmp_path / "bomb")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04rest", "a workbook"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", "an old Excel workbook"),
        (gzip.compress(b"%PDF-1.7"), "a PDF document"),
    ],
    ids=["workbook", "login page", "PDF", "old workbook", "packed PDF"],
)
def test_a_file_that_is_no_text_is_named_for_what_it_is(tmp_path, content, what):
    file = tmp_path / "sheet.xlsx"
    file.write_bytes(content)
    with pytest.raises(AssayError, match=what) as refused:
        read_dump(file)
    assert refused.value.fix


def test_stdin_is_decoded_like_a_file(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT.encode()))))
    assert read_dump(tmp_path.__class__("-")) == TEXT
