"""Cordon, drain and uncordon on the lab's scheduler: jobs are named, ended only when asked; others' cordons stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.act.actions import cordon, drain, drain_now, uncordon
from assay.act.actions.action import ACTION_NAMES, load_action
from assay.adapters.scheduler import load_scheduler_adapter
from assay.model.errors import AssayError
from assay.model.specs.node_settings import make_node_settings
from tests.support.lab_room import Room, wish

NODE = "n0008"


@pytest.fixture(autouse=True)
def open_for_jobs(room: Room) -> None:
    scheduler = room.scheduler(NODE)
    scheduler._request("POST", f"/nodes/{NODE}/requeue")
    scheduler._request("DELETE", f"/nodes/{NODE}/cordon")


def test_a_cordoned_node_takes_no_job(room: Room):
    cordon.run(room.context(), wish("cordon", NODE))

    assert cordon.verify(room.context(), wish("cordon", NODE)).done
    assert room.scheduler(NODE).read_cordon_reason(NODE) == "assay: a test wants it"
    with pytest.raises(AssayError, match="cordoned"):
        room.scheduler(NODE).place("late", "customer", NODE, 60)


def test_a_drain_waits_for_the_job_and_names_it(room: Room):
    job = room.scheduler(NODE).place("llama-405b", "customer", NODE, 1_000_000)

    drain.run(room.context(), wish("drain", NODE))
    proof = drain.verify(room.context(), wish("drain", NODE))

    assert not proof.done
    assert proof.is_waiting
    assert "llama-405b" in proof.reason
    assert [job.id for job in room.scheduler(NODE).list_jobs(NODE)] == [job.id], "the job goes on"


def test_a_drain_is_done_when_the_job_has_ended_by_itself(room: Room):
    room.scheduler(NODE).place("short", "customer", NODE, 1.0)
    drain.run(room.context(), wish("drain", NODE))
    room.world.clock().sleep(2)

    assert drain.verify(room.context(), wish("drain", NODE)).done


def test_a_drain_without_its_cordon_is_not_done(room: Room):
    assert drain.verify(room.context(), wish("drain", NODE)).done is False


def test_drain_now_ends_the_job_and_the_scheduler_records_that(room: Room):
    room.scheduler(NODE).place("gemma", "customer", NODE, 1_000_000)
    before = drain_now.before(room.context(), wish("drain-now", NODE))

    drain_now.run(room.context(), wish("drain-now", NODE))
    proof = drain_now.verify(room.context(), wish("drain-now", NODE, before=before))

    assert proof.done
    assert "gemma" in proof.reason
    jobs = room.scheduler(NODE)._request("GET", "/jobs")["jobs"]
    assert [job["state"] for job in jobs if job["name"] == "gemma"] == ["requeued"]


def test_only_our_own_cordon_is_undone(room: Room):
    cordon.run(room.context(), wish("cordon", NODE))
    uncordon.run(room.context(), wish("uncordon", NODE))
    assert room.scheduler(NODE).read_cordon_reason(NODE) == ""

    room.scheduler(NODE)._request("PUT", f"/nodes/{NODE}/cordon", {"reason": "maintenance by hand"})
    cordon.run(room.context(), wish("cordon", NODE))
    uncordon.run(room.context(), wish("uncordon", NODE))

    proof = uncordon.verify(room.context(), wish("uncordon", NODE))
    assert room.scheduler(NODE).read_cordon_reason(NODE) == "maintenance by hand"
    assert proof.done
    assert "maintenance by hand" in proof.reason, "it is honoured, and shown"


def test_a_scheduler_that_does_not_answer_is_trouble_with_its_address(room: Room):
    gone = load_scheduler_adapter(
        replace(
            room.fleet.nodes[NODE],
            settings=make_node_settings({"workloads": "lab", "lab_scheduler": "http://127.0.0.1:9"}),
        )
    )
    with pytest.raises(AssayError, match="does not answer"):
        gone.list_jobs(NODE)


def test_a_node_without_a_scheduler_has_nothing_to_hold_back(room: Room):
    node = replace(room.fleet.nodes[NODE], settings=make_node_settings({}))
    context = replace(room.context(), workloads=lambda _: load_scheduler_adapter(node))

    assert not load_scheduler_adapter(node).places_jobs
    assert cordon.verify(context, wish("cordon", NODE)).done
    assert drain_now.verify(context, wish("drain-now", NODE)).done


def test_an_unknown_adapter_is_trouble_that_names_the_known_ones(room: Room):
    with pytest.raises(AssayError, match="slurmish") as trouble:
        load_scheduler_adapter(replace(room.fleet.nodes[NODE], settings=make_node_settings({"workloads": "slurmish"})))
    assert "lab" in trouble.value.fix
    assert "none" in trouble.value.fix


@pytest.mark.parametrize("name", ACTION_NAMES)
def test_every_action_of_the_catalogue_can_be_begun_run_and_verified(name: str):
    found = load_action(name)
    assert found.patience_s >= 0
    assert callable(found.before)
    assert callable(found.run)
    assert callable(found.verify)


def test_an_action_that_is_not_there_is_trouble(room: Room):
    with pytest.raises(AssayError, match="explode"):
        load_action("explode")
