"""Controllers on one PostgreSQL: one is killed in a verification, and of those that are left one takes it up."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest

from assay.act.schedules.due_slots import SLOT_BEGUN, SLOT_RAN
from tests.act.schedules.by_hand import in_production
from tests.act.schedules.slot_killed import desk_of, verification
from tests.support.lab_room import Room
from tests.support.places import ROOT
from tests.support.real_postgres import Postgres, found, new_database
from tests.support.slurm_cluster import until

NODE, OTHER = "n0003", "n0004"
FOREVER_S = 10_000_000


@pytest.fixture
def url() -> Iterator[str]:
    if not (found("initdb") and found("postgres")):
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    server = Postgres()
    yield new_database(str(server.socket))
    server.close()


@pytest.fixture
def slowly(room: Room) -> Iterator[None]:
    """Let the lab's time pass as ours does, from the beginning of an hour on."""
    clock = room.world.clock()
    hour = clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    room.world.set_clock(hour, 1.0)
    yield
    room.world.set_clock(room.world.clock().now(), clock.rate)


@pytest.mark.slow
@pytest.mark.usefixtures("slowly")
def test_a_verification_whose_controller_was_killed_is_taken_up_by_one_of_those_left(room, url, tmp_path):
    places = (room.root, tmp_path, room.world.home)
    desk = desk_of(url, *places)
    in_production(desk)
    for name in (NODE, OTHER):
        room.fresh(name)
        room.scheduler(name)._request("POST", f"/nodes/{name}/requeue")
        room.scheduler(name)._request("DELETE", f"/nodes/{name}/cordon")
    room.scheduler(OTHER).place("llama", "customer", OTHER, FOREVER_S)
    room.change(NODE, lambda state: state["fails"].update(probe_hangs=True))
    words = [sys.executable, "-m", "tests.act.schedules.slot_killed", url, *map(str, places)]

    killed = subprocess.Popen(words, cwd=ROOT)
    until(lambda: desk.ledger.entries(kinds=[SLOT_BEGUN]))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    room.change(NODE, lambda state: state["fails"].update(probe_hangs=False))
    room.scheduler(NODE).place("short", "customer", NODE, 1)  # ends what the dead one left on the node
    until(lambda: not desk.ledger.leases() and not room.scheduler(NODE).list_jobs(NODE))
    assert verification(desk).attempt == 2

    left = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    said = sorted(one.communicate()[0].strip() for one in left)
    assert said[-1] == "True"
    assert said.count("True") == 1, "the other found it in living hands, or over"
    [ran] = desk.ledger.entries(kinds=[SLOT_RAN])
    assert (ran.body["ended"], ran.body["attempt"], ran.body["passed"]) == ("done", 2, {"": [NODE]})
    assert [entry.body["attempt"] for entry in desk.ledger.entries(kinds=[SLOT_BEGUN])] == [1, 2]
    assert [run.phases for run in desk.ledger.iter_runs()] == [("test",), ("idle",)], "judged once, and what it covered"
    assert desk.ledger.ages([NODE, OTHER])[NODE]["suites/test/test_gpu.py::test_gpu_burn"].subjects == 8
