"""`assay schedules run`, and what a single pass says of work by the clock: for those who call assay from cron or CI."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from assay.act.loop.reconcile_pass import PassReport
from assay.act.schedules import scheduled_jobs, slot_runner
from assay.act.schedules.due_slots import SLOT_RAN, SlotTask
from assay.act.schedules.slot_runner import SlotResult
from assay.cli.app import app
from assay.cli.verbs import reconcile
from assay.cli.workspace import Workspace
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from tests.act.schedules.by_hand import Hands, begun_slot


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was carried out, in place of discovering and judging a fleet."""
    carried: list[str] = []

    def work(_: object, task: object) -> SlotResult:
        carried.append(str(task))
        return SlotResult("done", "as it should be")

    def trouble(*_: object) -> SlotResult:
        raise AssayError("no answer from ibnetdiscover", where="head1")

    works = {
        "fabric-scan": work,
        "staleness-sweep": work,
        "trend-evaluation": work,
        "fabric-evaluation": trouble,
    }
    monkeypatch.setattr(scheduled_jobs, "SCHEDULED_JOBS", works)
    return carried


@pytest.fixture
def here(root):
    return Workspace(root)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def root(fleet, tmp_path, clock, monkeypatch):
    monkeypatch.setattr(Workspace, "clock", clock)
    for part in ("inventory", "specs"):
        (tmp_path / part).symlink_to(fleet.root / part)
    return tmp_path


def typed(root, *words: str) -> Result:
    return CliRunner().invoke(app, ["schedules", "run", *words, "--fleet", str(root)])


def slots(root, kind: str) -> list[tuple[str, str]]:
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    return [(one.body["schedule"], one.body["part"]) for one in ledger.entries(kinds=[kind])]


def test_what_is_due_is_carried_out_once_and_what_failed_is_told(root, done):
    first = typed(root)
    assert first.exit_code == 2, "the week could not be looked at"
    assert "fabric-scan of compute done: as it should be" in first.stdout
    assert "fabric-week of compute failed: head1: no answer from ibnetdiscover" in first.stdout
    assert done == ["fabric-scan of compute", "trends of fleet", "stale of byo-b", "stale of h100-a"]
    assert ("fabric-week", "compute") in slots(root, SLOT_RAN)
    again = typed(root)
    assert (again.exit_code, again.stdout) == (0, "nothing is due\n"), "the same slots are not due twice"


def test_a_named_schedule_is_carried_out_now_due_or_not_and_the_clock_goes_on(root, done, clock):
    typed(root)
    done.clear()
    clock.sleep(60)
    one = typed(root, "stale", "--of", "byo-b", "--format", "json")
    assert done == ["stale of byo-b"]
    [ran] = json.loads(one.stdout)["ran"]
    assert (ran["schedule"], ran["part"], ran["ended"], ran["reason"]) == ("stale", "byo-b", "done", "as it should be")
    assert ran["slot"] == "2026-11-21T12:01:00+00:00"
    assert typed(root).stdout == "nothing is due\n", "what was done out of turn stands for the slot before it"
    clock.sleep(14 * 60)
    assert "stale of byo-b done" in typed(root).stdout


def test_a_slot_that_died_is_closed_and_its_schedule_carried_out_all_the_same(root, done, here):
    desk = here.controller_context()
    [task] = slot_runner.select_tasks(desk, ["fabric-scan"])
    slot = task.slot.replace(year=task.slot.year - 1)
    dead = begun_slot(SlotTask(task.line, slot), "dead", desk.now)
    here.ledger.append(dead)
    told = typed(root, "fabric-scan")
    assert told.exit_code == 0
    assert "fabric-scan of compute lost" in told.stdout
    assert "fabric-scan of compute done" in told.stdout
    assert done == ["fabric-scan of compute"]


def test_the_search_that_burn_ins_wait_for_has_a_name_and_runs_only_if_it_is_due(root, done):
    assert typed(root, "collectives-new-nodes").stdout == "nothing is due\n"
    assert not done


def test_a_schedule_that_somebody_is_at_is_left_to_them(root, done, here):
    desk = here.controller_context()
    [task] = slot_runner.select_tasks(desk, ["fabric-scan"])
    here.ledger.append(begun_slot(task, "begun", desk.now))
    here.ledger.claim_lease(task.lease_name, "another", 60)
    assert typed(root, "fabric-scan").stdout == "nothing is due\n"
    assert not done


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["stail"], "no schedule is called stail\n  → did you mean stale?"),
        (["looks"], "looks only says how often the loop polls nodes\n  → poll every node with: assay reconcile --once"),
        (["idle-verification"], "idle-verification is for nothing in this fleet\n  → `assay schedules` says why"),
        (["stale", "--of", "mars"], "no schedule is for mars\n  → they are for compute"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_the_reason(root, done, words, told):
    refused = typed(root, *words)
    assert str(refused.exception).startswith(told)
    assert not done


def test_a_pass_says_what_is_due_and_how_to_do_it(here, capsys, caplog):
    caplog.set_level("INFO", "assay.reconcile")
    left = slot_runner.find_unattended_tasks(here.controller_context(str))
    assert "fabric-week of compute" in [str(task) for task in left]
    assert "fabric-scan of compute" not in [str(task) for task in left], "a pass has just scanned it"
    reconcile._print_passes([PassReport("")], left, "json")
    out = capsys.readouterr().out
    assert {"schedule": "fabric-week", "of": "compute"}.items() <= json.loads(out)["due"][0].items()
    assert "due, but a round does not run scheduled jobs: fabric-week of compute" in caplog.text
    assert "→ assay schedules run" in caplog.text


def test_nothing_is_said_where_a_controller_goes_on_with_the_ledger(here):
    here.ledger.claim_lease("controller/another", "another", 60)
    assert slot_runner.find_unattended_tasks(here.controller_context(str)) == []
