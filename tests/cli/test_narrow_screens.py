"""Tables on screens of any width; colours where a terminal shows them, and nobody asked for none."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli.output import make_table, open_console
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

TITLES = ("node", "pool", "state", "why")
WHY = "The GPU has fallen off the bus: gpu4 (gpu.xid.79), and nobody has looked at sc-hgx-h100-rack12-u24 since"
ROWS = [("sc-hgx-h100-rack12-u24", "h100-training-a", "[yellow]production → draining[/]", WHY)]


def draw(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    console = open_console()
    console.print(make_table(TITLES, ROWS, console.width))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_words_wrap_and_values_do_not(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = draw(width, monkeypatch, capsys)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert [word for cell in (*ROWS[0][:2], WHY) for word in cell.split() if word not in words] == []


def test_a_pipe_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (open_console().width, open_console(200).width) == (160, 200)


def run_in_terminal(home: Path, **environment: str) -> str:
    """Return what `assay history` writes to a terminal."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "assay", "history", "n0001", "--fleet", str(home)]
    ended = subprocess.run(words, stdout=theirs, env=os.environ | environment, check=False)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert ended.returncode == 0, text
    return text


def test_no_color_holds_in_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    ledger = Ledger.open(tmp_path / ".assay" / "ledger.sqlite", context="fleet")
    content = {"pool": "a", "state": "production"}
    ledger.append(LedgerEntry("e", "2026-11-01T00:00:00+00:00", "node.enrolled", "n0001", content))
    ledger.close()
    assert "\x1b[" in run_in_terminal(tmp_path, NO_COLOR="")
    assert "\x1b[" not in run_in_terminal(tmp_path, NO_COLOR="1")


LISTS = "from assay.cli.context_line import print_answer; print_answer({}, 'text', ['\x07line'] * 30)"


@pytest.mark.parametrize(("shown", "pages"), [("20", True), ("40", False)])
def test_a_long_list_is_paged_in_a_terminal(shown: str, pages: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {"TERM": "xterm", "LINES": shown, "COLUMNS": "80", "PAGER": "sed s/^/paged:/"}
    command = [sys.executable, "-c", LISTS]
    subprocess.run(command, stdin=theirs, stdout=theirs, env=os.environ | environment, check=True)
    os.close(theirs)
    lines = os.read(ours, 65536).decode().splitlines()
    os.close(ours)
    assert {line.startswith("paged:") for line in lines} == {pages}
    assert not pages or lines == ["paged:\\u0007line"] * 30, "what a machine said is escaped before the pager has it"


def test_a_pipe_and_a_program_get_a_long_list_as_it_is() -> None:
    ended = subprocess.run([sys.executable, "-c", LISTS], stdout=subprocess.PIPE, text=True, check=True)
    assert len(ended.stdout.splitlines()) == 30
