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
