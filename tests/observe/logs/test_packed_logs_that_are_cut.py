"""A packed log that is cut or damaged: what can be unpacked is judged, and nobody takes it for the whole log."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.model.errors import AssayError
from tests.support.log_spellings.carriers import COMPRESSIONS
from tests.support.places import ROOT

faults_app = load_verb("faults")

PACKINGS = {name: pack for name, pack in COMPRESSIONS.items() if name != "plain"}
XID = "[    9.500000] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"


def calm_lines(count: int) -> str:
    """Return lines that pack badly, so that a cut leaves whole blocks of every packing before it."""
    random = Random(5)
    return "".join(f"[{at / 10 + 10:12.6f}] usb 1-1: reset {random.randbytes(24).hex()}\n" for at in range(count))


CALM = calm_lines(6_000)
CUT, DAMAGED = "break off", "are damaged"


def spoil(content: bytes, how: str) -> bytes:
    place = len(content) * 3 // 4
    return content[:place] if how == CUT else content[:place] + Random(7).randbytes(len(content) - place)


@cache
def pack(text: str, packing: str) -> bytes:
    return PACKINGS[packing](text.encode())


def write(folder: Path, text: str, packing: str, how: str = CUT) -> Path:
    (folder / "log").write_bytes(spoil(pack(text, packing), how))
    return folder / "log"


def run(file: Path, *words: str):
    return CliRunner().invoke(faults_app, [str(file), "--fleet", str(ROOT), *words])


@pytest.mark.parametrize("how", [CUT, DAMAGED])
@pytest.mark.parametrize("packing", PACKINGS)
def test_what_was_unpacked_is_judged_and_the_cut_is_told(packing, how, tmp_path):
    file = write(tmp_path, XID + CALM, packing, how)
    result = run(file)
    assert result.exit_code == 1
    assert "gpu.xid.79 on 0000:1b:00: action reboot" in result.stdout
    assert "faults: 1, with an action: 1 so far" in result.stdout
    assert f"read in part only: its {packing} data {how}" in result.stdout
    document = json.loads(run(file, "--format", "json").stdout)
    assert document["broken"].startswith(f"its {packing} data {how}")
    assert 2_000 < document["lines"] < 6_001


@pytest.mark.parametrize("words", [(), ("--format", "json")])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_cut_log_is_never_no_fault(packing, words, tmp_path):
    result = run(write(tmp_path, CALM + XID, packing), *words)
    assert isinstance(result.exception, AssayError), "which the command prints, with exit code 2"
    assert f"was read in part only: its {packing} data break off" in str(result.exception)
    assert '"faults": []' in result.stdout if words else "no fault so far" in result.stdout


def test_a_file_of_which_nothing_can_be_unpacked_is_refused(tmp_path):
    (tmp_path / "log").write_bytes(gzip.compress(XID.encode())[:8])
    result = run(tmp_path / "log")
    assert "cannot be read: its gzip data break off" in str(result.exception)


def test_a_cut_log_of_no_known_form_is_told_as_cut(tmp_path):
    (tmp_path / "log").write_bytes(gzip.compress(XID.encode())[:12])
    assert "is no log that I can read; it begins with '['; its gzip data break off" in str(
        run(tmp_path / "log").exception
    )
