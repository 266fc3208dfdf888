"""`assay observe --from FILE… --node N` as a person meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.cli.app import main
from assay.observe.evidence_store import EvidenceStore
from tests.support.judged_answers import judge_answer
from tests.support.places import ROOT

SMI = ROOT / "tests/data/nvidia-smi-q-x.xml"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for part in ("inventory", "specs"):
        (tmp_path / part).symlink_to(ROOT / "tests/data/smallest" / part)
    return tmp_path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "dmesg.txt").write_text("[    1.000000] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n")
    return tmp_path / "dmesg.txt"


def observe(monkeypatch: pytest.MonkeyPatch, capsys: Any, fleet: Path, *arguments: str) -> tuple[Any, str, str]:
    monkeypatch.setattr(sys, "argv", ["assay", "observe", "--fleet", str(fleet), *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    judge_answer(["observe", *arguments], said.out)
    return (left.value.code or 0, *said)


def test_files_become_the_evidence_of_a_node(fleet: Path, log: Path, monkeypatch: Any, capsys: Any) -> None:
    arguments = ["--from", str(SMI), str(log), "--node", "n1", "--at", "2026-11-21T08:00:00Z", "--format", "json"]
    code, out, _ = observe(monkeypatch, capsys, fleet, *arguments)
    told = json.loads(out)
    assert (code, told["node"], told["at"]) == (0, "n1", "2026-11-21T08:00:00+00:00")
    kept = EvidenceStore(fleet / ".assay/evidence").latest("n1")
    assert kept is not None
    assert kept.digest() == told["evidence"]
    assert kept.read("probe", "gpu", "source").value == "nvidia-smi"
    assert kept.read("probe", "nvme").reason == "not among the recordings"


def test_what_was_read_in_is_counted_and_what_is_missing_told_once(
    fleet: Path, log: Path, monkeypatch: Any, capsys: Any
) -> None:
    code, out, _ = observe(monkeypatch, capsys, fleet, "--from", str(SMI), str(log), "--node", "n1")
    heading, *missing = out.splitlines()
    assert (code, heading.startswith("n1 at "), " value, " in heading) == (0, True, True)
    assert [line.endswith(", bmc: not among the recordings") for line in missing] == [True]


def test_an_old_recording_is_kept_but_is_not_the_newest(fleet: Path, log: Path, monkeypatch: Any, capsys: Any) -> None:
    said = [
        observe(monkeypatch, capsys, fleet, "--from", str(log), "--node", "n1", "--at", at)[2]
        for at in ("2026-11-21T08:00:00Z", "2026-11-20T08:00:00Z")
    ]
    newer = "evidence of n1 of 2026-11-21 08:00:00 UTC is newer; --at TIME sets the time of the recording"
    assert said == ["", f"stored as history: {newer}\n"]
    store = EvidenceStore(fleet / ".assay/evidence")
    newest = store.latest("n1")
    assert newest is not None
    assert newest.at.day == 21
    assert len(list((fleet / ".assay/evidence/objects").glob("*/*"))) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "{log}"], "do not name their node"),
        (["--from", "{log}", "--node", "n9"], "there is no node n9"),
        (["--from", "{log}", "{log}", "--node", "n1"], "hold probe.kernel_log"),
        (["--from", "{odd}", "--node", "n1"], "no format that is known here"),
        (["--from", "/nowhere", "--node", "n1"], "cannot be read"),
        (["--from", "{log}", "--node", "n1", "--at", "noon"], "'noon' is not a time"),
        (["--node", "n1"], "only --node, --at and --out go with --from"),
    ],
)
def test_what_cannot_be_read_in_is_exit_2_and_nothing_is_stored(
    fleet: Path, log: Path, arguments: list[str], said: str, monkeypatch: Any, capsys: Any
) -> None:
    (fleet / "odd").write_text("shopping list\n")
    filled = [one.format(log=log, odd=fleet / "odd") for one in arguments]
    code, out, err = observe(monkeypatch, capsys, fleet, *filled)
    assert (code, out) == (2, "")
    assert said in err
    assert not (fleet / ".assay/evidence").exists()


XID = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("line", "foreign"),
    [
        (f"Nov 21 18:00:00 gpu-7 kernel: {XID}", ["gpu-7"]),
        (f"gpu-7: [ 1.5] {XID}", ["gpu-7"]),
        (f'{{"host": "gpu-7", "log": "{XID}", "time": "2026-11-21T18:00:00Z"}}', ["gpu-7"]),
        ("gpu-7: 1 | 11/21/2026 | 18:00:00 | Power Supply PS1 | Failure detected | Asserted", ["gpu-7"]),
        (f"Nov 21 18:00:00 n1 kernel: {XID}", []),
        (f"Nov 21 18:00:00 N1.example.com kernel: {XID}", []),
        (f"[ 1.5] {XID}", []),
    ],
)
def test_a_log_of_another_host_is_told(
    fleet: Path, line: str, foreign: list[str], monkeypatch: Any, capsys: Any
) -> None:
    (fleet / "log").write_text(f"{line}\n")
    arguments = ["--from", str(fleet / "log"), "--node", "n1"]
    code, out, _ = observe(monkeypatch, capsys, fleet, *arguments, "--format", "json")
    assert (code, json.loads(out)["foreign_hosts"]) == (0, foreign)
    _, out, _ = observe(monkeypatch, capsys, fleet, *arguments)
    assert ("the lines are of the host gpu-7, not of n1" in out) == bool(foreign)


def test_a_log_of_another_node_of_the_fleet_is_refused(fleet: Path, monkeypatch: Any, capsys: Any) -> None:
    (fleet / "log").write_text(f"Nov 21 18:00:00 n2.example.com kernel: {XID}\n")
    code, out, err = observe(monkeypatch, capsys, fleet, "--from", str(fleet / "log"), "--node", "n1")
    assert (code, out) == (2, "")
    assert "are of n2.example.com, which is another node than n1" in err
    assert "--node n2" in err
    assert not (fleet / ".assay/evidence").exists()
