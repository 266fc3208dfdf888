"""An upgrade that is killed while it writes ends well with the next one, and loses nothing that changed in between."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.cli.verbs.upgrade import lock_upgrades
from assay.declare.starter import upgrade_journal
from assay.declare.starter.upgrade_journal import PLACE, apply_upgrade, find_broken_off, finish_upgrade
from assay.model.errors import AssayError
from tests.declare.starter.copied_fleet import NEW, CopiedFleet, lines

A, TEN = "suites/a.py", lines(*range(1000, 1010))
COPIED = {A: TEN, "suites/m.py": TEN, "suites/d.py": "d\n", "docs/gone.md": "gone\n", "docs/old.md": TEN, "same": "s\n"}
SITE = {A: lines("site", *range(1001, 1010)), "suites/m.py": TEN + "site\n"}
THEIRS = {
    A: lines("theirs", *range(1001, 1010)),
    "suites/m.py": "theirs\n" + TEN,
    "suites/d.py": "newer\n",
    "docs/moved.md": TEN,
    "deploy/new/x": "x\n",
    "same": "s\n",
}
POINTS = ("mkdir", "write_bytes", "write_text", "rename", "replace", "unlink", "rmdir", "rmtree")
"""Calls after which the disk is different."""


def make_fleet(root: Path) -> CopiedFleet:
    root.mkdir()
    fleet = CopiedFleet(root, COPIED)
    fleet.change(SITE)
    (root / ".assay").mkdir()
    return fleet


def die_at(fleet: CopiedFleet, number: int) -> bool:
    """Apply the upgrade in a process that kills itself before its n-th change; return whether it was killed."""
    plan = fleet.plan(THEIRS)
    child = os.fork()
    if child == 0:
        left = [number]
        for owner, name in [*((Path, name) for name in POINTS[:-1]), (upgrade_journal.shutil, "rmtree")]:
            setattr(owner, name, counting(getattr(owner, name), left))
        try:
            apply_upgrade(fleet.site, plan)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def counting(call: Callable, left: list[int]) -> Callable:
    def counted(*words: object, **more: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words, **more)

    return counted


def upgrade_again(fleet: CopiedFleet) -> None:
    """Do what `assay upgrade --apply` does."""
    if find_broken_off(fleet.root):
        assert find_broken_off(fleet.root) == NEW
        finish_upgrade(fleet.site)
    else:
        assert fleet.site.list_uncommitted(fleet.plan(THEIRS).list_touched()) == [], "it was killed before it wrote"
        apply_upgrade(fleet.site, fleet.plan(THEIRS))


def state(fleet: CopiedFleet) -> tuple[dict[str, str], str, object]:
    return fleet.read(), fleet.git("status", "--porcelain", "--untracked-files=all"), fleet.record()


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 14])
def test_a_kill_before_any_step_and_the_next_call_end_as_one_call_without_a_kill(tmp_path: Path, step: int) -> None:
    whole = make_fleet(tmp_path / "whole")
    upgrade_again(whole)
    expected, number, written = state(whole), 0, 0
    while True:
        fleet = make_fleet(tmp_path / f"killed-{number}")
        if not die_at(fleet, number):
            break
        written += bool(find_broken_off(fleet.root))
        upgrade_again(fleet)
        assert state(fleet) == expected, number
        assert not (fleet.root / PLACE).exists()
        number += step
    assert number > 30
    assert written > 10 / step


def find_first_kill_with_a_journal(fleet: CopiedFleet) -> None:
    """Kill an upgrade after it wrote the conflict, and before it wrote its record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrade_journal, "mark_conflict", lambda *_: os._exit(0))
        if (child := os.fork()) == 0:
            apply_upgrade(fleet.site, fleet.plan(THEIRS))
        os.waitpid(child, 0)
    assert find_broken_off(fleet.root)


def test_a_file_that_a_person_changed_after_the_kill_is_not_written_over(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path / "fleet")
    find_first_kill_with_a_journal(fleet)
    fleet.write({"suites/m.py": "by hand\n"})
    with pytest.raises(AssayError, match="was changed while the upgrade was under way") as told:
        finish_upgrade(fleet.site)
    assert told.value.where == "suites/m.py"
    assert fleet.read()["suites/m.py"] == "by hand\n"
    fleet.git("checkout", "HEAD", "--", "suites/m.py")
    assert finish_upgrade(fleet.site) == [A]


def test_a_journal_that_cannot_be_read_is_told_with_the_way_back(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path / "fleet")
    find_first_kill_with_a_journal(fleet)
    fleet.write({f"{PLACE}/journal.json": "{"})
    with pytest.raises(AssayError, match="cannot be read"):
        find_broken_off(fleet.root)


def test_two_upgrades_of_one_repository_do_not_run_at_a_time(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path / "fleet")
    with lock_upgrades(fleet.root), pytest.raises(AssayError, match="another upgrade"), lock_upgrades(fleet.root):
        pass
