"""Whatever stands in a log is told or refused with a person's words; nothing of it breaks the readers."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from assay.cli.verbs.faults import collect_log_faults
from assay.cli.workspace import load_surrounding_catalog
from assay.decide.faults.log_file_faults import LogFaultCollector
from assay.model.errors import AssayError
from assay.model.facts import to_json
from assay.model.log_message import LineTally
from assay.observe.logs import kernel_log_search
from assay.observe.logs.kernel_log_forms import DMESG
from assay.observe.logs.log_form import DmesgPieces, LogQuery
from assay.observe.logs.log_reader import LogReader
from tests.support.log_spellings.envelopes import ENVELOPES
from tests.support.log_spellings.events import LINES
from tests.support.log_spellings.json_envelopes import JSON_ENVELOPES
from tests.support.places import ROOT

CATALOG = load_surrounding_catalog(ROOT)
NOW = datetime(2026, 11, 22, tzinfo=UTC)
RECORDINGS = [path.read_bytes() for path in sorted((Path(__file__).parent / "recordings").iterdir())]
XID = b"NVRM: Xid (PCI:0000:1b:00): 79, pid=1"


def faults(content: bytes) -> tuple[list[dict], int, int] | None:
    """Return the faults, lines and unread of a log, None where it is refused."""
    log, stream = (
        LogReader(io.BytesIO(content).read, CATALOG.kernel_log_matcher, NOW, "here"),
        LogFaultCollector(CATALOG),
    )
    try:
        collect_log_faults(log, stream, CATALOG)
    except AssayError:
        return None
    found = to_json(stream.faults())
    json.dumps(found)
    return found, log.tally.lines, log.tally.unreadable


@given(st.binary(max_size=400))
@example(b"\n" * 10)
@example(b"[" * 5000)
@example(b'{"MESSAGE": ' + b"[" * 3000)
@example(b"Feb 29 00:00:00 n1 kernel: " + XID)
@example(b"[99999999999999999999999999.9] " + XID)
@example(b'{"MESSAGE":"NVRM: Xid (PCI:0000:1b:00): 79", "__REALTIME_TIMESTAMP":"9' + b"9" * 40 + b'"}')
def test_any_bytes_are_told_or_refused(content):
    faults(content)


@given(st.sampled_from(RECORDINGS), st.data())
def test_a_spoilt_recording_is_still_told_or_refused(recording, data):
    place = data.draw(st.integers(0, len(recording)))
    spoilt = recording[:place] + data.draw(st.binary(max_size=8)) + recording[place + data.draw(st.integers(0, 8)) :]
    read = faults(spoilt)
    assert read is None or read[2] <= read[1]


@given(
    st.lists(st.binary(max_size=30).filter(lambda junk: b"\n" not in junk and b"\r" not in junk), max_size=6), st.data()
)
def test_a_xid_among_any_junk_is_found(junk, data):
    """In a log whose form is known, whatever else stands in it."""
    lines = [b"[  1.0] a: b", b"[  2.0] a: b", *junk]
    lines.insert(data.draw(st.integers(0, len(lines))), b"[  3.0] " + XID)
    read = faults(b"\n".join(lines))
    if read is not None:  # enough junk of another form may make it another log
        assert ("gpu.xid.79" in {one["fault"] for one in read[0]}) or not read[1]


ENVELOPED = [envelope.write(LINES[:3]).replace("79", "13").encode() for envelope in (*ENVELOPES, *JSON_ENVELOPES)]


@given(st.sampled_from(ENVELOPED), st.binary(max_size=40).filter(lambda junk: not set(junk) & set(b"\r\n")), st.data())
def test_a_xid_behind_any_junk_in_any_log_is_never_no_fault(log, junk, data):
    """The line may break the log, so that it is refused; but it is never left out in silence."""
    lines = log.split(b"\n")
    lines.insert(data.draw(st.integers(0, len(lines))), junk + XID)
    content = b"\n".join(lines)
    source, stream = (
        LogReader(io.BytesIO(content).read, CATALOG.kernel_log_matcher, NOW, "here"),
        LogFaultCollector(CATALOG),
    )
    try:
        collect_log_faults(source, stream, CATALOG)
    except AssayError:
        return
    assert source.tally.uncounted or "gpu.xid.79" in {fault["fault"] for fault in to_json(stream.faults())}


@given(st.integers(1, 64), st.lists(st.sampled_from([b"x" * 40, b"[ 1.0] " + XID, b"", b"[ 2.0] usb"]), max_size=12))
def test_where_a_chunk_ends_makes_no_difference(size, lines):
    content = b"\n".join(lines)
    source = io.BytesIO(content)
    pieces = list(kernel_log_search.read_chunks(lambda _: source.read(size)))
    assert b"".join(pieces) == content
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    query = LogQuery(CATALOG.kernel_log_matcher, NOW, LineTally(), DmesgPieces(CATALOG.kernel_log_matcher))
    told = list(kernel_log_search.find_kernel_messages(DMESG, pieces, query))
    assert sum("Xid" in message.text for message in told) == sum(XID in line for line in lines)
    assert query.tally.lines == len(content.splitlines())
