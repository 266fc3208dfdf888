"""The fleets of `make bench` are valid, reproducible, and checked much sooner than Ansible lists them."""

from __future__ import annotations

import filecmp
import math
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from bench import big, changes
from bench.big_fleet import make
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ANSIBLE, CHECK
from tests.support.places import ROOT


def test_a_made_fleet_has_no_problems_and_a_full_set_of_specs(tmp_path: Path) -> None:
    fleet = make(tmp_path / "fleet", 600)
    report = check_repository(fleet)
    assert ([one for one in report.problems if one.severity != "notice"], report.nodes) == ([], 600)
    assert {file.parent.name for file in (fleet / "specs").rglob("*.yaml")} == {
        file.parent.name for file in (ROOT / "specs").rglob("*.yaml")
    }


def test_a_fleet_is_the_same_each_time(tmp_path: Path) -> None:
    one, other = (make(tmp_path / name, 40) for name in ("one", "other"))
    for part in ("inventory", "specs/fabrics"):
        names = sorted(file.name for file in (one / part).iterdir())
        assert filecmp.cmpfiles(one / part, other / part, names, shallow=False) == (names, [], [])


@pytest.mark.parametrize("name", changes.CHANGES)
def test_a_change_touches_every_node_and_can_be_undone(tmp_path: Path, name: str) -> None:
    fleet = make(tmp_path / "fleet", 40)
    before = load_fleet(fleet)
    changes.CHANGES[name](fleet)
    after = load_fleet(fleet)
    assert [one for one in check_repository(fleet).problems if one.severity != "notice"] == []
    for node in before.nodes.values():
        new = after.nodes[node.name]
        assert (node.hca_guids, before.node_specs[node.spec]) != (new.hca_guids, after.node_specs[new.spec])
    changes.undo(fleet)
    assert subprocess.run(["git", "-C", fleet, "status", "--porcelain"], capture_output=True, check=True).stdout == b""


@pytest.mark.parametrize(("side", "figure", "holds"), [("at most", 2.1, False), ("at least", 2.1, True)])
def test_a_bound_holds_on_its_own_side(side: str, figure: float, holds: bool) -> None:
    one = Measurement("x", figure, "×", side, 2)
    assert (one.holds, one.as_json()["holds"]) == (holds, holds)


def test_a_command_that_does_not_end_well_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended 3"):
        cost([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


@pytest.mark.slow(minutes=2)
def test_checking_ten_thousand_nodes_takes_an_eighth_of_the_time_in_which_ansible_lists_them(tmp_path: Path) -> None:
    """Ansible is stopped when it has used eight times the CPU time of the check: `make bench` lets it go on."""
    fleet = make(tmp_path / "big", big.BIG)
    check = cost(CHECK, fleet)
    assert check.peak_mb < big.PEAK_MB
    allowed_s = math.ceil(big.ANSIBLE_TIMES * check.cpu_s)
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (allowed_s, allowed_s + 9))
    listed = subprocess.run(ANSIBLE, cwd=fleet, stdout=subprocess.DEVNULL, preexec_fn=limit, check=False)
    assert listed.returncode == -signal.SIGXCPU, "Ansible has not listed them by then"
