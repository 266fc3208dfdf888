"""The same events in every spelling: whatever wraps, encodes and packs the lines, the answer is the same, and exact."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import cycle
from pathlib import Path

import pytest

from assay.cli.verbs.faults import classify_log
from assay.model.errors import AssayError
from assay.model.facts import to_json
from assay.model.specs.fault_catalog import FaultCatalog
from tests.support.log_spellings.carriers import COMPRESSIONS, ENCODINGS
from tests.support.log_spellings.envelopes import ENVELOPES, Envelope
from tests.support.log_spellings.events import LINES, TOLD, WRITTEN, expected
from tests.support.log_spellings.json_envelopes import JSON_ENVELOPES

EVERY = (*ENVELOPES, *JSON_ENVELOPES)
BARE = ("dmesg-t", "journal-cat", "unknown-words", "json-strings")
"""Spellings that are recognised by a message of the kernel alone."""
FAULTY = [line for line in LINES if "Xid" in line.text or "AER" in line.text]


SPELLINGS = list(zip(EVERY, cycle(ENCODINGS), cycle(COMPRESSIONS), strict=False))
"""Every envelope, in turn in every encoding and every compression."""


def write(folder: Path, envelope: Envelope, encoding: str, compression: str) -> Path:
    file = folder / "log"
    file.write_bytes(COMPRESSIONS[compression](ENCODINGS[encoding](envelope.write(LINES))))
    os.utime(file, (WRITTEN.timestamp(),) * 2)
    return file


def answer(file: Path, catalog: FaultCatalog) -> dict[str, tuple[str, str, str, int, int]]:
    document = to_json(classify_log(str(file), catalog))
    assert document["uncounted"] == ""
    return {
        fault["fault"]: (
            fault["subject"],
            fault["first"] or "",
            fault["last"] or "",
            fault["count"],
            fault["lines"],
        )
        for fault in document["faults"]
    }


@pytest.mark.parametrize(("envelope", "encoding", "compression"), SPELLINGS, ids=lambda one: getattr(one, "name", one))
def test_the_answer_is_the_same_in_every_spelling(envelope, encoding, compression, tmp_path, catalog):
    file = write(tmp_path, envelope, encoding, compression)
    assert answer(file, catalog) == expected(envelope.clock, envelope.resolution)
    assert {fault["host"] for fault in to_json(classify_log(str(file), catalog))["faults"]} == {envelope.host}


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_and_in_every_mix(encoding, compression, tmp_path, catalog):
    for envelope in EVERY:
        file = write(tmp_path, envelope, encoding, compression)
        assert answer(file, catalog) == expected(envelope.clock, envelope.resolution), envelope.name


@pytest.mark.parametrize("envelope", EVERY, ids=lambda one: one.name)
def test_a_message_that_breaks_off_is_never_no_fault(envelope, tmp_path, catalog):
    cut = [line._replace(text=line.text.partition(")")[0]) for line in LINES if "Xid" in line.text]
    calm = [line for line in LINES if "Xid" not in line.text and "AER" not in line.text]
    (tmp_path / "log").write_text(envelope.write(sorted([*calm, *cut])))
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert document["faults"] == []
    assert "Xid" in document["uncounted"]


def test_lines_without_any_fault_are_no_fault_in_no_spelling(tmp_path, catalog):
    calm = [line for line in LINES if line not in FAULTY]
    for envelope in EVERY:
        (tmp_path / "log").write_text(envelope.write(calm))
        if envelope.name in BARE:
            with pytest.raises(AssayError, match=r"no log that I can read; it begins with .*usb 1-1"):
                to_json(classify_log(str(tmp_path / "log"), catalog))
            continue
        document = to_json(classify_log(str(tmp_path / "log"), catalog))
        assert (document["faults"], document["uncounted"]) == ([], ""), envelope.name


DMESG = shutil.which("dmesg")
OPTIONS = ("", "-x", "-d", "-T", "-r", "-t", "-d -T", "--time-format iso")
RELATIVE = ("-H", "-e", "-e -x", "--time-format delta")
"""Times that build on the line before, which nobody reads: each line is one without a time."""
COLOURED = tuple(f"{options} -L=always" for options in OPTIONS)


def run_dmesg(options: str, folder: Path) -> Path:
    """Return what dmesg prints of the lines. Skips where it does not have the options."""
    (folder / "raw").write_text("".join(f"<4>[{line.uptime:12.6f}] {line.text}\n" for line in LINES))
    call = [str(DMESG), "--nopager", "-F", str(folder / "raw"), *options.split()]
    printed = subprocess.run(call, capture_output=True, check=False)
    if printed.returncode:
        pytest.skip(f"this dmesg has no {options}")
    (folder / "log").write_bytes(printed.stdout)
    return folder / "log"


@pytest.mark.skipif(DMESG is None, reason="dmesg is not installed")
@pytest.mark.parametrize("options", [*OPTIONS, *COLOURED, *RELATIVE])
def test_what_dmesg_itself_prints_is_read(options, tmp_path, catalog):
    told = answer(run_dmesg(options, tmp_path), catalog)
    assert {name: (one[0], one[4]) for name, one in told.items()} == {
        name: (one.subject, one.lines) for name, one in TOLD.items()
    }
    is_untimed = "-t" in options.split() or options in RELATIVE
    assert is_untimed == (told["gpu.xid.48"][3] == 3), "without times, no burst is known"


@pytest.mark.skipif(DMESG is None, reason="dmesg is not installed")
@pytest.mark.parametrize("options", RELATIVE)
def test_times_that_build_on_the_line_before_are_refused_where_no_fault_is(options, tmp_path, catalog, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LINES", [line for line in LINES if line not in FAULTY])
    with pytest.raises(AssayError, match="no log that I can read") as refused:
        to_json(classify_log(str(run_dmesg(options, tmp_path)), catalog))
    assert "dmesg (not -e, -H or delta)" in str(refused.value.fix)
