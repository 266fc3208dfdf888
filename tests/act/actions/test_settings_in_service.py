"""The action `configure`: it brings the settings of its decision and nothing else, and disturbs no job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from assay.act.actions import configure
from assay.act.actions.action import EffectIntent
from assay.model.errors import AssayError
from tests.support.lab_room import Room, wish

NODE = "n0004"
FOREVER_S = 10_000_000


def order(idle: bool, *settings: str) -> EffectIntent:
    return replace(wish("configure", NODE), params={"settings": list(settings), "idle": idle})


def spoil(room: Room, sysctls: Mapping[str, str] = {}, **host: Any) -> None:
    """Make the node as new, with these values of the host."""
    room.fresh(NODE)

    def edit(state: dict[str, Any]) -> None:
        state["host"] |= host
        state["host"]["sysctls"] |= sysctls

    room.change(NODE, edit)


@pytest.mark.slow
def test_only_the_settings_of_the_decision_are_brought_and_twice_is_as_once(room: Room):
    spoil(room, {"vm.zone_reclaim_mode": "1"}, governor="powersave", transparent_hugepages="always")
    room.change(NODE, lambda state: state.update(kernel="6.8.0-1-generic"))
    context, intent = room.context(), order(False, "host.sysctls", "host.governor")
    assert configure.before(context, intent) == {
        "settings": {"host.governor": "powersave", "host.sysctls.vm.zone_reclaim_mode": "1"}
    }
    assert configure.verify(context, intent).done is False
    for _ in range(2):
        configure.run(context, intent)
        proof = configure.verify(context, intent)
        assert (proof.done, proof.reason) == (True, "as declared: host.sysctls, host.governor")
    state = room.state(NODE)
    assert state["host"]["transparent_hugepages"] == "always", "its role was not run"
    assert (state["kernel"], state["boot"]["count"]) == ("6.8.0-1-generic", 1), "nothing is restarted"
    room.fresh(NODE)


def test_a_role_that_would_also_bring_what_needs_an_idle_node_is_not_run(room: Room):
    spoil(room, {"vm.zone_reclaim_mode": "1", "vm.nr_hugepages": "512"})
    with pytest.raises(AssayError, match=r"vm\.nr_hugepages differs too, and needs an idle node"):
        configure.run(room.context(), order(False, "host.sysctls"))
    room.fresh(NODE)


def test_a_node_that_got_a_job_in_between_is_left_alone(room: Room):
    spoil(room)
    room.change(NODE, lambda state: state["nics"][0].update(mtu=1500))
    room.scheduler(NODE).place("llama", "customer", NODE, FOREVER_S)
    with pytest.raises(AssayError, match=r"needs an idle node is brought under job .*llama"):
        configure.run(room.context(), order(True, "nics.mtu"))
    room.scheduler(NODE).drain(NODE, "the job ends", now=True)
    room.scheduler(NODE).uncordon(NODE)
    room.fresh(NODE)


def test_settings_that_cannot_be_read_prove_nothing(room: Room):
    spoil(room)
    room.change(NODE, lambda state: state["power"].update(state="Off"))
    proof = configure.verify(room.context(), order(False, "host.sysctls"))
    assert proof.done is None
    assert "No route to host" in proof.reason
    room.fresh(NODE)
