"""A piece of a log that is dmesg's alone is searched faster, and tells the same as when it is searched in full."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.verbs.faults import collect_log_faults
from assay.cli.workspace import load_surrounding_catalog
from assay.decide.faults.log_file_faults import LogFaultCollector
from assay.model.errors import AssayError
from assay.observe.logs.log_form import DmesgPieces
from assay.observe.logs.log_reader import LogReader

CATALOG = load_surrounding_catalog(None)
PIECES = DmesgPieces(CATALOG.kernel_log_matcher)
DOWN = "mlx5_core 0000:18:00.0 ibp24s0: Link down"
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=a, GPU has fallen off the bus."
STAMPED = [
    f"[   12.345678] {DOWN}",
    f"[123456.345678] {DOWN}",
    f"[   13.345678][  T123] {DOWN}",
    f"[   13.345678] [  T123] {XID}",
    f"[   14.000000] {XID}",
    f"[   14.000000] [drm] {XID}",
    f"[   14.000000]{XID}",
    f"[   15.000000] audit: op={XID}",
    f"[   15.000000] a\\\\n{DOWN}",
    "[   15.000000] usb 1-1: new [device] number 3",
    "[   16.000000]",
    "[   17.000000] ",
    "[",
    "[no end",
]
OTHERS = [
    "",
    DOWN,
    "Nov 10 03:11:07 n1 kernel: last message repeated 4 times",
    f"Nov 10 03:11:07 n1 kernel: {DOWN}",
    f"<4>[   12.345678] {DOWN}",
    "   1 | 11/10/2026 | 03:11:07 | Processor CPU1 | IERR | Asserted",
    "Severity: Critical",
    '[{"Id": "1", "Severity": "Critical", "Message": "lost"}]',
    "Critical,fan,lost,",
]


def tell(lines: list[str]) -> object:
    log = LogReader(io.BytesIO("\n".join(lines).encode()).read, CATALOG.kernel_log_matcher, NOW, "here")
    collector = LogFaultCollector(CATALOG)
    try:
        collect_log_faults(log, collector, CATALOG)
    except AssayError as error:
        return str(error)
    return collector.faults(), log.tally.lines, log.tally.uncounted


NOW = datetime(2026, 11, 21, tzinfo=UTC)


@given(st.lists(st.sampled_from([*STAMPED, *STAMPED, *OTHERS]), min_size=1, max_size=12))
def test_what_is_told_is_the_same_without_the_short_way(lines):
    told = tell(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DmesgPieces, "holds_only_dmesg", lambda *_: False)
        assert told == tell(lines)


@pytest.mark.parametrize("line", STAMPED)
def test_a_line_of_dmesg_leaves_a_piece_dmesgs(line):
    assert PIECES.holds_only_dmesg(f"{STAMPED[0]}\n{line}\n".encode())


@pytest.mark.parametrize("line", OTHERS[1:])
def test_any_other_line_does_not(line):
    assert not PIECES.holds_only_dmesg(f"{STAMPED[0]}\n{line}\n{STAMPED[0]}".encode())
    assert not PIECES.holds_only_dmesg(f"{line}\n{STAMPED[0]}\n".encode())


def test_harmless_lines_are_left_out():
    piece = f"{STAMPED[0]}\n{STAMPED[9]}\n\n{STAMPED[4]}\n".encode()
    assert PIECES.holds_only_dmesg(piece)
    assert PIECES.find_unusual_lines(piece) == [0, len(STAMPED[0]) + len(STAMPED[9]) + 3]
