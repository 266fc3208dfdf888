"""The lab's scheduler: many nodes in one question, and work in spare time that a customer's job ends at once."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta

import pytest

from assay.adapters.scheduler import VERIFY_UNDRAIN, SchedulerAdapter, SchedulerNodeStatus, undrain_if_supported
from assay.lab.scheduler import LabScheduler
from assay.observe.transports.command import build_probe_script
from tests.support.lab_room import Room

NODE, OTHER = "n0008", "n0009"
FOREVER_S = 10_000_000


@pytest.fixture(autouse=True)
def free(room: Room) -> None:
    for name in (NODE, OTHER):
        room.scheduler(name)._request("POST", f"/nodes/{name}/requeue")
        room.scheduler(name)._request("DELETE", f"/nodes/{name}/cordon")


def begun(scheduler: LabScheduler, *command: str, deadline_s: float = 60) -> tuple[threading.Thread, list]:
    """Start spare work, wait until it runs, and return its thread with where its answer will be."""
    answers: list = []
    thread = threading.Thread(target=lambda: answers.append(scheduler.run_spare(NODE, command, b"", deadline_s)))
    thread.start()
    return thread, answers


def wait_for(path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_one_question_tells_of_all_nodes_what_single_ones_tell_of_each(room):
    scheduler: SchedulerAdapter = room.scheduler(NODE)
    job = room.scheduler(NODE).place("llama", "customer", NODE, FOREVER_S)
    scheduler.cordon(OTHER, "a test wants it")
    assert scheduler.read_statuses([NODE, OTHER, "n0010"]) == {
        NODE: SchedulerNodeStatus((job,), ""),
        OTHER: SchedulerNodeStatus((), "assay: a test wants it"),
        "n0010": SchedulerNodeStatus(),
    }
    assert scheduler.list_jobs(NODE) == (job,)
    assert scheduler.read_cordon_reason(OTHER) == "assay: a test wants it"


def test_many_are_cordoned_at_once_and_what_stood_stays(room):
    scheduler = room.scheduler(NODE)
    scheduler._request("PUT", f"/nodes/{OTHER}/cordon", {"reason": "maintenance by hand"})
    scheduler.cordon_many({NODE: "one", OTHER: "two"})
    found = scheduler.read_statuses([NODE, OTHER])
    assert [found[name].cordon for name in (NODE, OTHER)] == ["assay: one", "maintenance by hand"]


def test_work_in_spare_time_runs_on_the_node_as_the_probe_does(room):
    spare = room.scheduler(NODE).run_spare(
        NODE, ["python3", "-I", "-S", "-", "--active", "memory"], build_probe_script(), 60
    )
    assert (spare.exit_code, spare.preempted_by) == (0, "")
    answer = json.loads(spare.output)
    assert answer["active"]["memory"]["errors"] == {"value": 0}
    assert answer["probe"]["host"]["boot_id"]["value"] == room.state(NODE)["boot"]["id"]


def test_its_exit_code_and_what_it_complains_of_are_told(room):
    spare = room.scheduler(NODE).run_spare(NODE, ["sh", "-c", "echo so; echo why >&2; exit 3"], b"", 60)
    assert (spare.exit_code, spare.output, spare.stderr) == (3, b"so\n", "why\n")


def test_a_customers_job_ends_it_at_once_and_is_named(room, tmp_path):
    thread, answers = begun(room.scheduler(NODE), "sh", "-c", f"touch {tmp_path}/on; sleep 100; touch {tmp_path}/over")
    wait_for(tmp_path / "on")
    placed = time.monotonic()
    job = room.scheduler(NODE).place("llama", "customer", NODE, FOREVER_S)
    thread.join()
    assert time.monotonic() - placed < 20, "a hundred seconds were asked for"
    assert (answers[0].exit_code, answers[0].preempted_by) == (None, str(job))
    assert not (tmp_path / "over").exists()


def test_nothing_begins_where_a_customer_is_or_nobody_may_be(room, tmp_path):
    scheduler = room.scheduler(NODE)
    job = scheduler.place("llama", "customer", NODE, FOREVER_S)
    assert scheduler.run_spare(NODE, ["touch", str(tmp_path / "on")], b"", 60).preempted_by == str(job)
    scheduler._request("POST", f"/nodes/{NODE}/requeue")
    scheduler.cordon(NODE, "a test wants it")
    closed = scheduler.run_spare(NODE, ["touch", str(tmp_path / "on")], b"", 60)
    assert (closed.exit_code, closed.preempted_by) == (None, "")
    assert not (tmp_path / "on").exists()


def test_what_does_not_end_in_time_is_ended_and_has_no_exit_code(room):
    spare = room.scheduler(NODE).run_spare(NODE, ["sleep", "100"], b"", 0.5)
    assert (spare.exit_code, spare.preempted_by) == (None, "")


def test_spare_work_is_no_customers_job(room, tmp_path):
    thread, answers = begun(room.scheduler(NODE), "sh", "-c", f"touch {tmp_path}/on; sleep 0.5")
    wait_for(tmp_path / "on")
    assert room.scheduler(NODE).list_jobs(NODE) == ()
    thread.join()
    assert answers[0].exit_code == 0


def test_a_drain_that_asks_for_it_is_undone_by_a_verification_that_began_after_it(room):
    scheduler = room.scheduler(NODE)
    scheduler._request("PUT", f"/nodes/{NODE}/cordon", {"reason": f"sue: odd losses, {VERIFY_UNDRAIN}"})
    now = room.world.clock().now()
    assert undrain_if_supported(scheduler, NODE, now - timedelta(hours=1)) == ""
    assert undrain_if_supported(scheduler, NODE, now) == f"sue: odd losses, {VERIFY_UNDRAIN}"
    assert scheduler.read_cordon_reason(NODE) == ""


def test_a_drain_that_does_not_ask_for_it_stays(room):
    scheduler = room.scheduler(NODE)
    scheduler._request("PUT", f"/nodes/{NODE}/cordon", {"reason": "maintenance by hand"})
    assert undrain_if_supported(scheduler, NODE, room.world.clock().now() + timedelta(days=1)) == ""
    assert scheduler.read_cordon_reason(NODE) == "maintenance by hand"
