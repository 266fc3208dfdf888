"""`assay status` counts many nodes before it lists those that need a look, and shows the nodes that people select."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.cli.app import load_verb
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT

NODES = 120
OUT = {7: "triage", 30: "wipe", 31: "triage"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet with 120 nodes in its ledger, each an hour longer in its state than the one before; node 9 is held."""
    home, now = tmp_path_factory.mktemp("many") / "fleet", datetime.now(UTC)
    for folder in ("inventory", "specs"):
        shutil.copytree(ROOT / folder, home / folder)
    (home / ".assay").mkdir()
    ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
    for number in range(1, NODES + 1):
        at = (now - timedelta(hours=number)).isoformat()
        content = {"pool": "even" if number % 2 == 0 else "odd", "state": OUT.get(number, "production")}
        ledger.append(LedgerEntry(f"e{number}", at, "node.enrolled", f"n{number:04}", content))
    hold = {"who": "ann", "reason": "a look at its fans"}
    ledger.append(LedgerEntry("h", (now - timedelta(minutes=5)).isoformat(), "hold", "n0009", hold))
    ledger.close()
    note_readings(home)
    return home


@pytest.fixture
def status(fleet: Path) -> Callable[..., Result]:
    return lambda *words: CliRunner().invoke(load_verb("status"), ["--fleet", str(fleet), *words])


def _list_nodes(result: Result) -> list[str]:
    assert result.exit_code == 0, result.exception
    return [line.split()[0] for line in result.stdout.splitlines() if line.startswith((" n0", "n0"))]


def test_many_nodes_are_counted_and_only_those_that_need_a_look_are_listed(status: Callable[..., Result]) -> None:
    told = status()
    assert _list_nodes(told) == ["n0030", "n0007", "n0009", "n0031"]
    rows = [line.split() for line in told.stdout.splitlines() if line.strip().startswith(("even", "odd"))]
    assert [" ".join(row) for row in rows] == ["even 60 59 production, 1 wipe", "odd 60 58 production, 2 triage"]
    assert "117 production, 2 triage, 1 wipe" in told.stdout
    assert "116 in service are not listed" in told.stdout
    assert len(_list_nodes(status("--all"))) == NODES


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_table_fits_and_words_wrap_but_no_value(
    status: Callable[..., Result], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = " ".join(status("--all").stdout.split())
    monkeypatch.setenv("COLUMNS", str(width))
    lines = status("--all").stdout.splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split() if "─" not in word}
    assert words <= {*whole.split(), "node,", "pool,", "state,", "since,"}
    assert _list_nodes(status("--all")) == [word for word in whole.split() if word[:2] == "n0" and word.isalnum()]


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (["--state", "triage"], ["n0007", "n0031"]),
        (["--state", "triage", "--state", "wipe", "--pool", "even"], ["n0030"]),
        (["--node", "n[0001-0003],n0030"], ["n0002", "n0030", "n0001", "n0003"]),
        (["--since", "150m"], ["n0002", "n0001"]),
        (["--rack", "r02", "--since", "390m"], ["n0006", "n0005"]),
        (["--state", "zap"], []),
    ],
)
def test_nodes_are_selected_as_people_name_them(
    status: Callable[..., Result], words: list[str], nodes: list[str]
) -> None:
    assert _list_nodes(status(*words)) == nodes
    document = json.loads(status(*words, "--format", "json").stdout)
    assert [one["node"] for one in document["nodes"]] == nodes


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--node", "n0121"], "there is no node n0121"),
        (["--pool", "evn"], "there is no pool evn"),
        (["--rack", "r99"], "there is no rack r99"),
        (["--state", "trage"], "there is no state trage"),
        (["--since", "soon"], "'soon' is not a duration"),
        (["--server", "https://127.0.0.1:1", "--rack", "r01"], "a server does not tell the racks of its nodes"),
    ],
)
def test_what_cannot_be_shown_is_said(status: Callable[..., Result], words: list[str], what: str) -> None:
    told = status(*words).exception
    assert isinstance(told, AssayError)
    assert told.what == what
    assert told.fix
