"""Credentials of a BMC that are revoked in the middle: said in words, and taken up again when they are back."""

from __future__ import annotations

import pytest

from assay.act.actions import powercycle, zap
from assay.act.actions.action import wait_until
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import EFFECT_KINDS, journal_intent
from assay.adapters.bmc.client import open_fleet_bmc
from assay.adapters.bmc.errors import BmcLoginRefused
from tests.support.lab_room import Room, wish

NODE = "n0011"


def test_a_session_that_is_shut_out_says_so_each_time_and_goes_on_when_it_is_let_in_again(room: Room):
    with open_fleet_bmc(room.fleet, room.fleet.nodes[NODE]) as bmc:
        with (
            room.shut_out(NODE),
            pytest.raises(BmcLoginRefused, match="power is read: the BMC refuses the user or the pass"),
        ):
            wait_until(bmc.read_power_state, 60, "power is read", refused_s=0.5)
        assert bmc.read_power_state() == "On"


def test_a_zap_whose_bmc_shuts_us_out_is_unknown_and_no_image_is_sent_twice(room: Room):
    room.fresh(NODE, BIOS="2.0.0")
    ctx, intent = room.context(), wish("zap", NODE)
    with room.shut_out(NODE):
        begun = journal_intent(ctx, zap, intent)
        proof = steps.verify_safely(ctx, zap, begun)
    assert "the BMC refuses the user or the password" in begun.before["unread"]
    assert proof.done is None
    assert "the BMC refuses the user or the password" in proof.reason
    assert [entry.kind for entry in ctx.ledger.entries(NODE, EFFECT_KINDS)] == ["effect.intent"]
    assert room.flashes(NODE) == []


def test_a_powercycle_is_not_begun_where_the_bmc_lets_nobody_in(room: Room):
    room.fresh(NODE)
    boots = room.state(NODE)["boot"]["count"]
    intent = wish("powercycle", NODE, before=powercycle.before(room.context(), wish("powercycle", NODE)))
    with room.shut_out(NODE), pytest.raises(BmcLoginRefused):
        powercycle.run(room.context(), intent)
    assert room.state(NODE)["boot"]["count"] == boots
    powercycle.run(room.context(), intent)
    assert powercycle.verify(room.context(), intent).done
