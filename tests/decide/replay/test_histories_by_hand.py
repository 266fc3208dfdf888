"""Small histories whose answer was worked out by hand: a reboot takes half an hour, suites do, a person an hour."""

from __future__ import annotations

from dataclasses import replace

from assay.model.specs.node_settings import NodeSettings
from tests.decide.replay.replay_world import HOUR, clear, fault, moves, pool


def test_what_is_catastrophic_is_answered_at_once_and_the_node_is_back_after_reboot_and_suites(replayed):
    story = replayed([fault(0, "n1", "gpu.xid.79", in_use=True), clear(600, "n1", "gpu.xid.79")])
    assert moves(story) == [
        (0, "production", "production-reboot", "immediate"),
        (900 + 1800 + 1800, "production-reboot", "production", "immediate"),
    ]
    assert story["nodes"] == {"n1": 4500}
    assert story["totals"] == {
        "seconds_out": 4500,
        "actions": {"cordon": 1, "drain-now": 1, "collect": 1, "reboot": 1, "uncordon": 1},
        "tickets": 0,
    }
    assert story["breaker_trips"] == []
    assert "gpu.xid.79 on unlisted/n1" in story["decisions"][0]["because"]


def test_suites_say_nothing_until_the_fault_is_cleared(replayed):
    story = replayed([fault(0, "n1", "gpu.missing"), clear(10 * HOUR, "n1", "gpu.missing")])
    assert moves(story)[1:] == [(10 * HOUR + 1800, "production-reboot", "production", "immediate")]
    assert moves(replayed([fault(0, "n1", "gpu.missing")]))[1:] == []


def test_what_is_degraded_waits_for_the_job_and_is_done_when_it_ends(replayed):
    events = [
        fault(0, "n1", "ib.link.down", part="mlx5_3", in_use=True),
        {"time": 7200, "node": "n1", "event": "use", "in_use": False},
    ]
    story = replayed(events)
    assert moves(story) == [
        (0, "production", "draining", "pending"),
        (7200, "production", "draining", "immediate"),
        (7200, "draining", "triage", "immediate"),
    ]
    assert story["decisions"][0]["blockers"] == ["customer work"]
    assert moves(replayed(events[:1])) == [(0, "production", "draining", "pending")], "for ever, if the job is"
    assert moves(replayed([fault(0, "n1", "ib.link.down")]))[0] == (0, "production", "draining", "immediate")


def test_what_went_to_triage_comes_back_through_hands_zap_and_a_whole_day_of_burn_in(replayed):
    story = replayed([fault(0, "n1", "gpu.thermal"), clear(HOUR, "n1", "gpu.thermal")])
    mended = 2 * HOUR
    zapped = mended + 60 + 7200 + 60
    assert moves(story) == [
        (0, "production", "draining", "immediate"),
        (0, "draining", "triage", "immediate"),
        (mended, "triage", "seatrial", "immediate"),
        (mended + 60, "seatrial", "zap", "immediate"),
        (zapped, "zap", "test", "immediate"),
        (zapped + 24 * HOUR + 60, "test", "production", "immediate"),
    ]
    assert story["totals"]["tickets"] == 1
    assert story["totals"]["actions"]["zap"] == 1


def test_the_same_fault_again_climbs_the_ladder_to_the_vendor(replayed):
    events = [fault(0, "n1", "gpu.xid.79", part="gpu2"), clear(60, "n1", "gpu.xid.79")]
    again = [fault(20 * HOUR, "n1", "gpu.xid.79", part="gpu2"), clear(21 * HOUR, "n1", "gpu.xid.79")]
    story = replayed([*events, *again])
    assert [to for _, _, to, _ in moves(story)][:5] == ["production-reboot", "production", "draining", "triage", "rma"]
    assert story["totals"]["actions"]["dossier"] == 1
    assert story["totals"]["tickets"] == 2, "one for triage, one for the return"
    late = [{**event, "time": event["time"] + 169 * HOUR} for event in events]
    assert [to for _, _, to, _ in moves(replayed([*events, *late]))] == ["production-reboot", "production"] * 2


def test_a_fault_during_the_verification_ends_it(replayed):
    events = [fault(0, "n1", "gpu.xid.79"), clear(60, "n1", "gpu.xid.79"), fault(1900, "n1", "gpu.xid.48")]
    assert [to for _, _, to, _ in moves(replayed(events))] == ["production-reboot", "draining", "triage"]


def test_a_rack_loses_two_nodes_at_once_and_the_third_waits_for_room(replayed):
    names = [f"n{number}" for number in range(8)]
    listed = pool(*names) | pool(*(f"m{number}" for number in range(48)), rack="r2")
    # Four of one class would be a series of the rack.
    classes = dict.fromkeys(names[:3], "gpu.xid.79") | {"n3": "gpu.xid.95"}
    shown = [fault(0, name, shows) for name, shows in classes.items()]
    over = [clear(60, name, classes[name]) for name in ("n0", "n1", "n3")]
    story = replayed([*shown, *over, clear(7200, "n2", "gpu.xid.79")], listed)
    assert moves(story, "n3") == [], "its fault was over before there was room"
    assert moves(story, "n0")[0] == moves(story, "n1")[0] == (0, "production", "production-reboot", "immediate")
    held = next(one for one in story["decisions"] if one["node"] == "n2")
    assert (held["timing"], held["remedy"]) == ("record", "wait")
    assert held["because"].startswith("held back: 2 of 8 already out in rack r1")
    assert moves(story, "n2")[0] == (3600, "production", "production-reboot", "immediate"), (
        "when the first two are back"
    )


def test_restarts_wait_for_the_hour(replayed):
    shown = [fault(number, f"n{number}", "gpu.xid.79", pool=f"p{number}") for number in range(7)]
    story = replayed(shown)
    assert [when for when, *_ in moves(story)] == [0, 1, 2, 3, 4, 5, HOUR]


def test_a_wave_trips_the_breaker_and_what_only_a_log_told_is_not_replayed_for_a_day(replayed):
    listed = pool(*(f"n{number}" for number in range(10)))
    story = replayed([fault(0, f"n{number}", "gpu.xid.79") for number in range(5)], listed)
    assert min(when for when, *_ in moves(story)) == 24 * HOUR
    (trip,) = story["breaker_trips"]
    assert (trip["time"], trip["pool"], trip["nodes"]) == (0, "a", [f"n{number}" for number in range(5)])
    assert "gpu.xid.79 on 5, all in rack r1" in trip["because"]


def test_after_the_breaker_checks_find_again_what_is_still_there(replayed):
    listed = pool(*(f"n{number}" for number in range(10)))
    shown = [fault(0, f"n{number}", "gpu.missing") for number in range(4)]
    story = replayed([*shown, *(clear(300, f"n{number}", "gpu.missing") for number in (1, 2, 3))], listed)
    assert moves(story, "n0") == [(601, "production", "production-reboot", "immediate")]
    assert len(moves(story)) == 1
    assert len(story["breaker_trips"]) == 1


def test_an_unmanaged_node_is_only_watched(replayed):
    shown = [fault(0, "u1", "gpu.xid.79"), fault(60, "u1", "ib.link.flap"), fault(90, "u1", "psu.failed")]
    story = replayed(shown, pool("u1", profile="unmanaged"))
    assert moves(story) == []
    assert {one["timing"] for one in story["decisions"]} == {"record"}
    assert story["totals"]["actions"] == {}


def test_lost_telemetry_moves_nothing_and_lets_nothing_pass(replayed):
    assert moves(replayed([fault(0, "n1", "telemetry.lost")])) == []
    events = [fault(0, "n1", "gpu.xid.79"), clear(60, "n1", "gpu.xid.79"), fault(120, "n1", "telemetry.lost")]
    assert [to for _, _, to, _ in moves(replayed(events))] == ["production-reboot"]
    back = [*events, clear(9 * HOUR, "n1", "telemetry.lost")]
    assert moves(replayed(back))[-1] == (9 * HOUR + 1800, "production-reboot", "production", "immediate")


def test_a_failed_power_supply_is_a_ticket_and_its_end_ends_it(replayed):
    story = replayed([fault(0, "n1", "psu.failed", in_use=True), clear(60, "n1", "psu.failed")])
    assert (moves(story), story["totals"]["tickets"]) == ([], 1)
    twice = replayed([fault(0, "n1", "psu.failed"), clear(60, "n1", "psu.failed"), fault(120, "n1", "psu.failed")])
    assert twice["totals"]["tickets"] == 2


def test_a_link_flaps_only_when_it_does_so_often_enough(replayed):
    assert moves(replayed([fault(number * 600, "n1", "ib.link.flap") for number in range(2)])) == []
    assert moves(replayed([fault(number * 600, "n1", "ib.link.flap") for number in range(3)]))[0][:3] == (
        1200,
        "production",
        "draining",
    )


def test_a_node_that_begins_in_a_persons_hands_stays_there_and_costs_nothing(replayed):
    listed = {name: replace(node, settings=NodeSettings()) for name, node in pool("n1").items()}
    story = replayed([fault(0, "n1", "gpu.xid.79"), clear(60, "n1", "gpu.xid.79")], listed)
    assert (moves(story), story["nodes"]) == ([], {"n1": 0})


def test_times_are_told_as_they_came(replayed):
    shown = [{**fault(0, "n1", "gpu.xid.79"), "time": "2026-11-21T13:00:00+01:00"}]
    assert replayed(shown)["decisions"][0]["time"] == "2026-11-21T12:00:00+00:00"


def test_strangers_are_not_the_whole_of_their_pool_yet_four_of_them_at_once_are_a_wave(replayed):
    few = replayed([fault(0, f"x{number}", "gpu.thermal", in_use=number == 0) for number in range(3)])
    assert [timing for *_, timing in moves(few)][:3] == ["pending", "immediate", "immediate"]
    assert few["breaker_trips"] == []
    wave = replayed([fault(0, f"x{number}", "gpu.thermal") for number in range(4)])
    assert "4 of 20 serving nodes of pool unlisted" in wave["breaker_trips"][0]["because"]


def test_what_nothing_happened_to_asks_for_nobody_however_long_it_waits_for_people(replayed):
    listed = {name: replace(node, settings=NodeSettings()) for name, node in pool("n1").items()}
    story = replayed([fault(0, "n2", "gpu.missing"), fault(900 * HOUR, "n2", "gpu.xid.13")], listed)
    assert [one["remedy"] for one in story["decisions"]] == ["reboot", "none"]
    assert story["totals"]["tickets"] == 0


def test_a_fault_every_five_minutes_for_a_day_on_a_busy_node_is_held_after_the_fourth_time_and_asks_a_person(replayed):
    each = range(0, 24 * HOUR, 600)
    events = [one for at in each for one in (fault(at, "n1", "gpu.xid.62"), clear(at + 300, "n1", "gpu.xid.62"))]
    events[0]["in_use"] = True
    story = replayed(events)
    assert {name: story["totals"]["actions"][name] for name in ("cordon", "uncordon")} == {"cordon": 3, "uncordon": 1}
    assert story["totals"]["tickets"] == 1
    assert moves(story)[-1] == (2100, "production", "draining", "pending")


def test_a_fault_that_stays_away_after_the_second_time_lets_the_node_open_half_an_hour_later(replayed):
    events = [fault(0, "n1", "gpu.xid.62", in_use=True), clear(300, "n1", "gpu.xid.62")]
    events += [fault(600, "n1", "gpu.xid.62"), clear(900, "n1", "gpu.xid.62")]
    story = replayed(events)
    withdrawn = [one["time"] for one in story["decisions"] if one["remedy"] == "withdraw"]
    assert withdrawn == [300, 900 + 1800]
