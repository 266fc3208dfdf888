"""What conserver recorded is read in order and searched."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.model.errors import AssayError
from assay.model.text.safe_text import register_secret
from assay.observe.logs.console_log import format_line, search_console

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
RECORDED = (
    b"[-- Console up -- Tue Dec  1 04:31:45 2026]\r\n"
    b"first\r\r\n"
    b"[Tue Dec  1 04:31:46 2026]\x1b[2J\x1b[1;31mred\x1b[0m \x00alert\r\r\n"
    b"[Tue Dec  1 04:31:46 2026]\r\r\n"
    b"[Tue Dec  1 04:31:59 2026]n1 login: [-- Console down -- Tue Dec  1 04:33:12 2026]\r\n"
    b"[-- Console up -- Tue Dec  1 04:34:12 2026]\r\n"
    b"[Xxx Yyy 99 99:99:99 2026]the machine's own\r\r\n"
    b"\xff\xfe tulip-of-a-console"
)
LINES = [
    "[2026-12-01T04:31:45+00:00] [-- Console up --]",
    "[2026-12-01T04:31:45+00:00] first",
    "[2026-12-01T04:31:46+00:00] red alert",
    "[2026-12-01T04:31:59+00:00] n1 login:",
    "[2026-12-01T04:33:12+00:00] [-- Console down --]",
    "[2026-12-01T04:34:12+00:00] [-- Console up --]",
    "[2026-12-01T04:34:12+00:00] [Xxx Yyy 99 99:99:99 2026]the machine's own",
    "[2026-12-01T04:34:12+00:00] �� •••",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    register_secret("root:tulip-of-a-console")
    (tmp_path / "n1.log").write_bytes(RECORDED)
    (tmp_path / "n1.log-20261101-000000").write_bytes(b"[Sat Oct 31 10:00:00 2026]old Tulip\r\n")
    (tmp_path / "n10.log").write_bytes(b"[Tue Dec  1 04:00:00 2026]another node\r\n")
    (tmp_path / "n1.log-bak").write_bytes(b"not conserver's")
    return tmp_path


def shown(folder: Path, **wish: object) -> list[str]:
    return [format_line(line) for line in search_console(folder, "n1", **wish).lines]  # type: ignore[arg-type]


def test_lines_have_their_times_without_colours_and_secrets_and_gaps_are_seen(folder: Path):
    assert shown(folder) == ["[2026-10-31T10:00:00+00:00] old Tulip", *LINES]


def test_they_are_searched_by_text_time_and_number(folder: Path):
    assert shown(folder, text="TULIP") == ["[2026-10-31T10:00:00+00:00] old Tulip"]
    assert shown(folder, since=datetime(2026, 12, 1, 4, 31, 46, tzinfo=UTC)) == LINES[2:]
    assert shown(folder, limit=2) == LINES[-2:]
    assert shown(folder, text="no such words") == []


def test_the_answer_says_from_when_to_when_it_was_recorded(folder: Path):
    os.utime(folder / "n1.log", (NOW.timestamp(), NOW.timestamp()))
    answer = search_console(folder, "n1")
    assert (answer.since, answer.until, answer.kept_days) == ("2026-10-31T10:00:00+00:00", NOW.isoformat(), 31)


def test_a_console_that_nobody_records_is_an_error(folder: Path):
    with pytest.raises(AssayError, match="nothing is recorded of the console of n2"):
        search_console(folder, "n2")


def test_the_newest_lines_are_found_over_files_and_a_file_that_goes_meanwhile_is_no_error(folder: Path):
    assert shown(folder, limit=len(LINES) + 1) == ["[2026-10-31T10:00:00+00:00] old Tulip", *LINES]
    assert shown(folder, limit=len(LINES)) == LINES
    (folder / "n1.log-20261101-000000").unlink()
    (folder / "n1.log-20261101-000000").symlink_to(folder / "nowhere")
    assert shown(folder) == LINES


def test_lines_without_end_are_read_in_parts(folder: Path):
    (folder / "n1.log").write_bytes(b"[Tue Dec  1 04:31:46 2026]" + b"x" * 10_000)
    lines = search_console(folder, "n1", text="x").lines
    assert max(len(line.text) for line in lines) <= 4096
    assert sum(len(line.text) for line in lines) == 10_000
    assert {line.at for line in lines} == {"2026-12-01T04:31:46+00:00"}
