"""A rehearsal and the real fleet share nothing: each command works on the home that is chosen, says so, or refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from assay.declare.fleet_cache import load_cached_fleet
from assay.declare.home import CONTEXT_VARIABLE, Home, choose_context, find_home
from assay.declare.loader import load_fleet
from assay.ledger.errors import LedgerError
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import IN_LAB, LedgerEntry
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

PLAIN = {name: text for name, text in os.environ.items() if name not in (CONTEXT_VARIABLE, "ASSAY_LEDGER")}
REAL_ADDRESS = "10.77.0.9"
OLD_LEDGER = b"years of history"


def assay(root: Path, *words: str, **variables: str) -> CompletedProcess[str]:
    return run_assay(*words, "--fleet", root, env={**PLAIN, **variables})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fleet repository with four nodes, its lab up, and chosen by that.

    A home of the real fleet stood beside the first pass in the lab. The tests find it moved away, as the pass left it.
    """
    root = tmp_path_factory.mktemp("two") / "homes"
    assert run_assay("init", root, env=PLAIN).returncode == 0
    real = make_real_home(root)
    up = assay(root, "lab", "up")
    assert up.returncode == 0, up.stderr
    done = assay(root, "reconcile", "--once")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("context lab: virtual machines only, of homes\n")
    real.rename(root.parent / "real")
    yield root
    assay(root, "lab", "down")


def make_real_home(root: Path) -> Path:
    real = root / ".assay"
    real.mkdir()
    (real / "ledger.sqlite").write_bytes(OLD_LEDGER)
    return real


def make_entry(ident: str = "1") -> LedgerEntry:
    return LedgerEntry(ident, datetime(2026, 11, 29, tzinfo=UTC).isoformat(), "test", "n0001", {"why": "a test"})


# What is chosen


def test_the_flag_goes_before_the_environment_and_that_before_the_choice(tmp_path: Path) -> None:
    assert "no fleet repository" in assay(tmp_path, "context", "lab").stderr
    (tmp_path / "inventory").mkdir()
    assert assay(tmp_path, "context", "--short").stdout == "fleet\n"
    assert assay(tmp_path, "context", "lab").stdout.startswith("context lab: virtual machines only")
    assert assay(tmp_path, "context", "--short").stdout == "lab\n"
    assert assay(tmp_path, "context", "--short", ASSAY_CONTEXT="fleet").stdout == "fleet\n"
    assert assay(tmp_path, "context", "--short", "--context", "lab", ASSAY_CONTEXT="fleet").stdout == "lab\n"
    before = run_assay("--context", "lab", "context", "--short", "--fleet", tmp_path, env=PLAIN)
    assert before.stdout == "lab\n"
    told = assay(tmp_path, "context", "fleet", ASSAY_CONTEXT="lab")
    assert "$ASSAY_CONTEXT says lab" in told.stderr


@pytest.mark.parametrize("written", ["moon\n", "", "\xff"])
def test_a_choice_that_is_none_is_never_taken_for_the_real_fleet(tmp_path: Path, written: str) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / ".assay-context").write_text(written, encoding="latin-1")
    with pytest.raises(AssayError):
        find_home(tmp_path)
    answer = assay(tmp_path, "status")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert ".assay-context" in answer.stderr


# What each home holds


def test_a_command_in_the_lab_leaves_the_fleets_home_as_it_was(fleet: Path) -> None:
    real = make_real_home(fleet)
    assert assay(fleet, "hold", "n0002", "--reason", "a rehearsal").returncode == 0
    assert assay(fleet, "report").returncode in (0, 1)
    for home in (real, fleet.parent / "real"):
        assert {path.name: path.read_bytes() for path in home.iterdir()} == {"ledger.sqlite": OLD_LEDGER}
    assert not (fleet / "reports").exists()
    shutil.rmtree(real)


def test_every_answer_and_entry_of_the_lab_says_so(fleet: Path) -> None:
    assert json.loads(assay(fleet, "status", "--format", "json").stdout)["context"] == "lab"
    with closing(Ledger.open_for_reading(fleet / ".assay-lab" / "ledger.sqlite", context="lab")) as ledger:
        assert {entry.context for entry in ledger.entries()} == {"lab"}
    samples = [line for line in assay(fleet, "metrics").stdout.splitlines() if line and not line.startswith("#")]
    assert [line for line in samples if 'context="lab"' not in line] == []
    assay(fleet, "validate", "--phase", "seatrial")
    assay(fleet, "report")
    assert "<title>Lab · " in (fleet / ".assay-lab" / "reports" / "index.html").read_text()


def test_an_environments_ledger_is_not_for_the_lab(fleet: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.sqlite"
    assert assay(fleet, "hold", "n0004", "--reason", "x", ASSAY_LEDGER=str(real)).returncode == 0
    assert not real.exists()


@pytest.mark.parametrize(
    "words", [("ledger", "seal"), ("discover", "--scan", "192.0.2.0/30"), ("validate", "--on", "slurm")]
)
def test_what_would_leave_the_lab_is_refused(fleet: Path, words: tuple[str, ...]) -> None:
    answer = assay(fleet, *words)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "the lab is chosen" in answer.stderr


def test_a_ledger_takes_no_entry_of_the_other_kind(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    with closing(Ledger.open(file, context="fleet")) as ledger:
        with pytest.raises(LedgerError, match="made in a lab"):
            ledger.append(replace(make_entry(), body={IN_LAB: True}))
        ledger.append(make_entry())
    with pytest.raises(LedgerError, match="the ledger of a fleet, and the lab is chosen"):
        Ledger.open(file, context="lab")
    rehearsed = tmp_path / "rehearsed.sqlite"
    with closing(Ledger.open(rehearsed, context="lab")) as ledger:
        ledger.append(make_entry())
        assert ledger.verify() == []
    for opening in (Ledger.open, Ledger.open_for_reading):
        with pytest.raises(LedgerError, match="the ledger of a lab, and the fleet is chosen"):
            opening(rehearsed, context="fleet")
    with closing(Ledger.open(rehearsed)) as ledger:  # whoever does not say which gets what it is
        ledger.append(make_entry("2"))
        assert {entry.context for entry in ledger.entries()} == {"lab"}


def test_a_rehearsals_backup_is_not_restored_as_the_fleets_ledger(fleet: Path, tmp_path: Path) -> None:
    assert assay(fleet, "ledger", "backup", str(tmp_path / "copy")).returncode == 0
    answer = assay(fleet, "ledger", "restore", str(tmp_path / "copy"), ASSAY_CONTEXT="fleet")
    assert answer.returncode == 2
    assert "this is the ledger of a lab, and the fleet is chosen" in answer.stderr
    shown = assay(fleet, "status", ASSAY_CONTEXT="fleet", ASSAY_LEDGER=str(tmp_path / "copy"))
    assert "this is the ledger of a lab, and the fleet is chosen" in shown.stdout + shown.stderr
    assert "in production" not in shown.stdout
    assert not (fleet / ".assay" / "ledger.sqlite").exists()


# A lab that does not answer


def test_a_node_that_the_lab_lacks_has_no_address_left(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory")
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    new = {"h100-a": {"hosts": {"n0001": {"bmc_address": REAL_ADDRESS, "ansible_host": REAL_ADDRESS}}}}
    (tmp_path / "inventory" / "zz-new.json").write_text(json.dumps(new))
    assert load_fleet(tmp_path).nodes["n0001"].bmc_address == REAL_ADDRESS
    (tmp_path / ".assay-lab").mkdir()
    for load in (load_fleet, load_cached_fleet, load_cached_fleet):
        node = load(tmp_path, ()).nodes["n0001"]
        assert node.bmc_address == "n0001.lab.invalid"
        assert (node.settings.workloads, node.settings.reach[0]) == ("lab", "sh")
        assert load(tmp_path).nodes["n0001"].bmc_address == REAL_ADDRESS


SLOW_HARM = [pytest.param(harm, marks=pytest.mark.slow) for harm in ("half", "other process", "no world")]


def test_what_a_labs_inventory_leaves_out_is_not_taken_from_the_real_node(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory")
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    real = {
        "bmc_address": REAL_ADDRESS,
        "bmc_credentials": {"env": "REAL"},
        "bmc_fingerprint": "sha256:" + "ab" * 32,
        "bmc_port": 8443,
        "workloads": "slurm",
        "slurm_conf": "/etc/real",
        "reach": ["ssh", "real"],
        "probe_command": ["sudo"],
        "fabric_discover": ["ssh", "real-head", "ibnetdiscover"],
    }
    new = {"h100-a": {"hosts": dict.fromkeys(("n0001", "n0002"), real)}}
    (tmp_path / "inventory" / "zz-new.json").write_text(json.dumps(new))
    overlay = tmp_path / ".assay-lab" / "world" / "inventory.yml"
    overlay.parent.mkdir(parents=True)
    said = {"bmc_port": 1, "bmc_credentials": {"env": "LAB"}}
    overlay.write_text(json.dumps({"all": {"hosts": {"n0001": said, "n0002": None}}}))
    fleet = load_fleet(tmp_path, [overlay])
    cut = [json.loads(fleet.nodes[name].settings.model_dump_json()) for name in ("n0001", "n0002")]
    assert (cut[0].pop("bmc_port"), cut[0].pop("bmc_credentials")["env"]) == (1, "LAB")
    assert (cut[1].pop("bmc_port"), cut[1].pop("bmc_credentials")) == (443, None)
    assert cut[0] == cut[1]
    assert not [text for text in ("real", "10.77", "sudo", "abab") if text in json.dumps(cut)]
    assert {fleet.nodes[name].bmc_address for name in ("n0001", "n0002")} == {"n0001.lab.invalid", "n0002.lab.invalid"}


@pytest.mark.parametrize("harm", ["kill", *SLOW_HARM])
def test_a_lab_that_does_not_answer_refuses_and_reaches_nothing(fleet: Path, tmp_path: Path, harm: str) -> None:
    root = tmp_path / "fleet"
    run_assay("init", root, env=PLAIN)
    home = Home(root, "lab")
    assert assay(root, "lab", "up").returncode == 0
    # the lab is new, and what a pass recorded is of the other tests' lab
    recorded = shutil.ignore_patterns("world")
    shutil.copytree(fleet / ".assay-lab", root / ".assay-lab", ignore=recorded, dirs_exist_ok=True)
    process = json.loads((home.world / "lab.json").read_text())["pid"]
    if harm == "kill":
        os.kill(process, signal.SIGKILL)
    elif harm == "half":
        (home.world / "inventory.yml").unlink()
    elif harm == "other process":
        os.kill(process, signal.SIGKILL)
        (home.world / "lab.json").write_text(json.dumps({"pid": os.getpid()}))
    else:
        os.kill(process, signal.SIGKILL)
        shutil.rmtree(home.world)
    for words in (
        ("reconcile", "--once"),
        ("observe",),
        ("move", "n0003", "production-reboot", "--reason", "rehearse"),
        ("zap", "n0003", "--reason", "rehearse"),
        ("validate",),
        ("schedules", "run"),
        ("fabric", "scan"),
    ):
        answer = assay(root, *words)
        assert (answer.returncode, answer.stdout) == (2, ""), words
        assert "the lab is chosen, and it is down" in answer.stderr, words
        assert "assay context fleet" in answer.stderr
    shown = assay(root, "status")
    assert shown.returncode == 0, shown.stderr
    assert "n0003" in shown.stdout
    assert not (root / ".assay").exists()
    if harm == "half":
        os.kill(process, signal.SIGKILL)


def test_up_chooses_the_lab_before_anything_can_fail(tmp_path: Path) -> None:
    root = tmp_path / "fleet"
    run_assay("init", root, env=PLAIN)
    (root / ".assay-lab").write_text("somebody's file")
    assert assay(root, "lab", "up").returncode == 2
    assert find_home(root).is_lab
    assert (root / ".assay-lab").read_text() == "somebody's file"


# Homes of earlier versions, in which both wrote


def make_mixed_home(root: Path) -> Path:
    home = root / ".assay"
    (root / "inventory").mkdir(exist_ok=True)
    (home / "lab").mkdir(parents=True)
    (home / "evidence").mkdir()
    with closing(Ledger.open(home / "ledger.sqlite")) as ledger:
        ledger.append(*(make_entry(str(number)) for number in range(1, 8)))
    return home


def test_a_mixed_home_is_told_and_nothing_acts_on_it(tmp_path: Path) -> None:
    root = tmp_path / "fleet"
    run_assay("init", root, env=PLAIN)
    choose_context(root, "fleet")
    make_mixed_home(root)
    answer = assay(root, "reconcile", "--once")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "mv .assay .assay-mixed" in answer.stderr
    assert "mv .assay .assay-mixed" in assay(root, "status").stderr
