"""Faults that come and go, or come back after weeks: they get a bounded number of answers, then a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from assay.act.orders.orders import OperatorIdentity, certify_node, list_node_orders
from assay.act.tickets.desired_tickets import list_desired_tickets
from assay.decide.moves.remedy_ladder import find_rung, has_recurred
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.model.entries.assets import PartsSeenEntry, SeenPart
from assay.model.entries.faults import FaultClearedEntry
from assay.model.errors import AssayError
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from tests.support.places import ROOT

JOB = ("job 17 (train)",)


def moved(made):
    return [(one.from_state, one.to_state, one.timing) for one in made if one.timing != "record"]


def clear(paper, name, fault):
    paper.write(
        decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(fault, "it passes again"), paper.now)
    )


def changed(policy, **sections) -> LifecyclePolicy:
    """Return the policy with other values in some sections, checked as if they were read from a file."""
    plain = policy.model_dump(exclude_unset=True)
    for name, values in sections.items():
        plain[name] = {**plain.get(name, {}), **values}
    return LifecyclePolicy.model_validate(plain)


class Flapper:
    """A busy node with a fault that comes and goes; what it costs in cordons, and what is asked of people."""

    def __init__(self, paper, fault_class="gpu.xid.62", parts=("gpu3",)):
        self.paper, self.fault_class, self.parts = paper, fault_class, parts
        self.actions, self.remedies = Counter(), Counter()
        paper.add("n1")
        paper.jobs["n1"] = JOB

    def live(self, **span):
        """Let time go by, then decide and act."""
        self.paper.later(**span)
        self.remedies.update(one.remedy for one in self.paper.step())
        self.actions.update(self.paper.settle("n1"))

    def flap(self, times, **span):
        """Let the fault come and go, each lasting `span`."""
        for number in range(times):
            fault = self.paper.fault("n1", self.fault_class, self.parts[number % len(self.parts)])
            self.live()
            self.paper.later(**span)
            clear(self.paper, "n1", fault)
            self.live()
            self.paper.later(**span)

    def tickets(self):
        return [ticket.key for ticket in list_desired_tickets(self.paper.situation(), [], {})]


@pytest.mark.slow
def test_a_fault_every_five_minutes_for_a_week_costs_three_cordons_and_one_uncordon_and_asks_a_person(paper):
    node = Flapper(paper)
    node.flap(1008, minutes=5)
    assert dict(node.actions) == {"cordon": 3, "uncordon": 1}, "the third only says why it stays out"
    assert node.remedies["ticket"] == 1
    assert node.tickets() == [f"flapping/n1/{paper.story('n1').stay_id}"]
    pending = paper.story("n1").pending
    assert (pending.to, pending.remedy, pending.rule) == ("draining", "triage", "flapping")
    paper.jobs["n1"] = ()
    assert moved(paper.step()) == [("production", "draining", "immediate")], "also while the fault is away"


def test_the_node_opens_after_a_longer_quiet_each_time(paper):
    node = Flapper(paper)
    node.flap(1, minutes=5)
    assert dict(node.actions) == {"cordon": 1, "uncordon": 1}, "after the first time, it opens at once"
    node.flap(1, minutes=5)
    assert dict(node.actions) == {"cordon": 2, "uncordon": 1}
    node.live(minutes=24)
    assert node.actions["uncordon"] == 1
    node.live(minutes=2)
    assert dict(node.actions) == {"cordon": 2, "uncordon": 2}, "30 min after the second"
    node.flap(1, minutes=5)
    node.live(minutes=110)
    assert dict(node.actions) == {"cordon": 3, "uncordon": 2}
    node.live(minutes=10)
    assert dict(node.actions) == {"cordon": 3, "uncordon": 3}, "2 h after the third"
    node.flap(1, minutes=5)
    node.live(hours=200)
    assert dict(node.actions) == {"cordon": 5, "uncordon": 3}, "after the fourth, only a person opens it"
    assert node.tickets()


def test_a_fault_that_comes_back_in_the_meantime_starts_the_quiet_again_and_counts(paper):
    node = Flapper(paper)
    node.flap(2, minutes=5)
    fault = paper.fault("n1", "gpu.xid.62", "gpu3")
    node.live(minutes=25)
    clear(paper, "n1", fault)
    node.live(minutes=100)
    assert node.actions["uncordon"] == 1
    node.live(minutes=25)
    assert node.actions["uncordon"] == 2


def test_times_that_are_older_than_the_window_count_no_more(paper):
    node = Flapper(paper)
    for _ in range(10):
        node.flap(1, minutes=5)
        node.live(hours=169)
    assert dict(node.actions) == {"cordon": 10, "uncordon": 10}
    assert node.tickets() == []


def test_an_idle_node_does_not_move_while_the_fault_is_away_and_does_when_it_is_back(paper):
    node = Flapper(paper)
    node.flap(2, minutes=5)
    paper.jobs["n1"] = ()
    assert moved(paper.step()) == []
    fault = paper.fault("n1", "gpu.xid.62", "gpu3")
    assert moved(paper.step()) == [("production", "production-gpu-reset", "immediate")]
    assert {one.id: one.response for one in paper.story("n1").faults}[fault] == "acted"


@pytest.mark.parametrize(
    ("parts", "rung"),
    [
        ({"gpu3": SeenPart("gpu", "B", "A", "GPU-B")}, "reboot"),
        ({"gpu3": SeenPart("gpu", "A", None, "GPU-B")}, "reboot"),
        ({"gpu4": SeenPart("gpu", "B", "D", "GPU-B")}, "triage"),
        ({"gpu3": SeenPart("gpu", "D", "A", "GPU-D"), "gpu4": SeenPart("gpu", "A", "D", "GPU-A")}, "triage"),
        ({"nvme3": SeenPart("nvme", "N", "M")}, "triage"),
    ],
    ids=["new", "new in one board", "another", "moved", "drive"],
)
def test_what_was_tried_for_a_gpu_does_not_count_for_the_one_that_takes_its_place(paper, parts, rung):
    def see(parts):
        paper.write(PartsSeenEntry(parts, {}).make_entry(f"parts {paper.now}", paper.now.isoformat(), "n1"))
        paper.later(minutes=1)

    def find_next(story):
        return find_rung(paper.policy.ladder, story, story.faults[-1], "reboot", paper.now)[0]

    paper.add("n1")
    see({"gpu3": SeenPart("gpu", "A", None, "GPU-A"), "gpu4": SeenPart("gpu", "D", None, "GPU-D")})
    paper.fault("n1", "gpu.xid.79", "gpu3")
    assert find_next(paper.story("n1")) == "reboot"
    paper.step()
    paper.settle("n1")
    paper.fault("n1", "gpu.xid.79", "gpu3")
    before = paper.story("n1")
    assert (find_next(before), has_recurred(paper.policy.ladder, before, before.faults[-1], paper.now)) == (
        "triage",
        True,
    )
    see(parts)
    after = paper.story("n1")
    is_same = rung == "triage"
    assert (find_next(after), has_recurred(paper.policy.ladder, after, after.faults[-1], paper.now)) == (rung, is_same)


@pytest.mark.parametrize("kind", ["certified", "part.replaced"])
def test_a_person_opens_a_node_that_flaps_and_the_count_starts_again(paper, kind):
    node = Flapper(paper)
    node.flap(6, minutes=5)
    paper.say(kind, "n1", reason="the cable was loose")
    node.live(minutes=1)
    assert (node.actions["uncordon"], node.tickets()) == (2, [])
    node.flap(1, minutes=5)
    assert node.actions["uncordon"] == 3


def test_the_order_that_its_ticket_names_is_taken(paper):
    node = Flapper(paper)
    fleet = replace(load_fleet(ROOT), policies={"default": paper.policy})
    ann = OperatorIdentity("ann", "the cable was loose", paper.now.isoformat())
    with pytest.raises(AssayError, match="needs no certification"):
        certify_node(fleet, ann, paper.story("n1"))
    node.flap(6, minutes=5)
    assert "certify" in list_node_orders(fleet, paper.story("n1"))
    order = certify_node(fleet, ann, paper.story("n1"))
    assert order.message == "n1 is certified in production by ann, and is opened again: the cable was loose"
    paper.write(order.entry)
    node.live(minutes=1)
    assert (node.actions["uncordon"], node.tickets()) == (2, [])


def test_a_flapping_link_is_held_and_goes_to_people(paper):
    node = Flapper(paper, "ib.link.down", ("mlx5_0",))
    node.flap(500, minutes=10)
    assert dict(node.actions) == {"cordon": 3, "uncordon": 1}
    assert node.tickets()


@pytest.mark.slow
def test_faults_that_alternate_over_parts_flap_as_one_node(paper):
    node = Flapper(paper, parts=[f"gpu{index}" for index in range(8)])
    node.flap(1008, minutes=5)
    assert dict(node.actions) == {"cordon": 4, "uncordon": 2}
    assert node.tickets()


def test_a_catastrophic_fault_of_a_flapping_node_is_answered_at_once(paper):
    node = Flapper(paper)
    node.flap(6, minutes=5)
    paper.fault("n1", "gpu.xid.79", "gpu3")
    assert moved(paper.step()) == [("production", "production-reboot", "immediate")]


def test_without_a_rung_a_flapping_node_stays_cordoned_with_a_ticket(paper):
    paper.policy = changed(paper.policy, flapping={"then": None})
    node = Flapper(paper)
    node.flap(100, minutes=5)
    assert dict(node.actions) == {"cordon": 2, "uncordon": 1}
    assert node.tickets()


class Breaker:
    """An idle node whose faults are answered: verified, proved, and certified by people where they must."""

    def __init__(self, paper):
        self.paper, self.answers = paper, []
        paper.add("n1")

    def break_down(self, fault_class, part="gpu3"):
        """Plant a fault, and follow the node until it serves again or waits for people."""
        self.paper.fault("n1", fault_class, part)
        for _ in range(12):
            for made in self.paper.step():
                if made.timing == "immediate":
                    self.answers.append(made.to_state)
            self.paper.settle("n1")
            state = self.paper.story("n1").state
            if state in ("production", "triage", "rma"):
                return state
            self.paper.later(minutes=1)
            self.paper.pass_all("n1")
        return self.paper.story("n1").state


def live_with(paper, days, faults):
    """Plant (class, part) one after another, each `days` after the last; return the reboots and the last state."""
    node = Breaker(paper)
    for fault_class, part in faults:
        node.break_down(fault_class, part)
        if node.answers[-1] != "production":
            node.paper.step()
            break
        paper.later(days=days)
    return node.answers.count("production-reboot"), paper.story("n1").state


def test_xid_79_every_8_days_for_a_year_gets_two_reboots_and_then_goes_back(paper):
    assert live_with(paper, 8, [("gpu.xid.79", "gpu3")] * 45) == (2, "rma")


def test_the_same_xid_on_other_gpus_does_not_burn_their_ladder_and_the_third_reboot_in_a_month_is_the_last(paper):
    faults = [("gpu.xid.79", f"gpu{number % 8}") for number in range(45)]
    assert live_with(paper, 8, faults) == (3, "triage"), "no part failed again after its repair: people find the cause"


def test_two_gpus_that_take_turns_get_three_reboots_and_then_the_node_goes_back(paper):
    faults = [("gpu.xid.79", f"gpu{number % 2}") for number in range(45)]
    assert live_with(paper, 8, faults) == (3, "rma")


@pytest.mark.parametrize(("remedies", "restarts"), [(["reset", "reboot", "powercycle"], 2), ([], 4)])
def test_a_window_counts_the_remedies_that_it_names_together_and_else_each_alone(paper, remedies, restarts):
    window = {"of": "node", "hours": 2160, "times": 2, "remedies": remedies}
    paper.policy = changed(paper.policy, ladder={"windows": [window]})
    node = Breaker(paper)
    for number in range(6):
        node.break_down("host.kernel.deadlock" if number % 2 else "gpu.xid.79", f"part{number}")
        paper.later(days=8)
    assert sum(state in ("production-reboot", "production-powercycle-test") for state in node.answers) == restarts


def test_without_the_windows_another_part_gets_a_remedy_of_its_own(paper):
    paper.policy = changed(paper.policy, ladder={"windows": []})
    node = Breaker(paper)
    assert [node.break_down("gpu.xid.79", f"gpu{number}") for number in range(3)] == ["production"] * 3
    assert node.break_down("gpu.xid.79", "gpu1") == "triage"


def test_a_fault_on_another_gpu_has_not_recurred(paper):
    paper.policy = changed(paper.policy, ladder={"windows": []})
    node = Breaker(paper)
    node.break_down("gpu.xid.79", "gpu1")
    paper.later(hours=1)
    assert node.break_down("gpu.xid.79", "gpu1") == "triage"
    paper.step()
    assert paper.story("n1").state == "rma", "its own fault came back after its repair"


def test_a_fault_on_another_gpu_leaves_triage_to_people(paper):
    policy = changed(paper.policy, ladder={"windows": []})
    rung = policy.ladder.rungs["reboot"].model_copy(update={"times": 1})
    paper.policy = policy.model_copy(
        update={"ladder": policy.ladder.model_copy(update={"rungs": {**policy.ladder.rungs, "reboot": rung}})}
    )
    node = Breaker(paper)
    node.break_down("gpu.xid.79", "gpu1")
    paper.later(hours=1)
    paper.fault("n1", "gpu.xid.79", "gpu2", remedy="triage")
    for _ in range(4):
        paper.step()
        paper.settle("n1")
    assert paper.story("n1").state == "triage"


def test_the_ledgers_year_of_one_fault_every_8_days_ends_in_few_reboots_also_when_people_return_the_node(paper):
    node = Breaker(paper)
    end = paper.now + timedelta(days=365)
    while paper.now < end:
        node.break_down("gpu.xid.79")
        for _ in range(8):
            if paper.story("n1").state == "production":
                break
            paper.step()
            paper.settle("n1")
            if paper.policy.states[paper.story("n1").state].certified_to:
                paper.say("certified", "n1")
            paper.later(hours=25)
            paper.pass_all("n1")
        paper.later(days=8)
    assert node.answers.count("production-reboot") == 6, "until it is a lemon"


def test_a_wave_that_flaps_costs_two_cordons_and_one_uncordon_of_each_node_that_has_room(paper):
    names, actions = [f"n{number:02}" for number in range(40)], Counter()
    for name in names:
        paper.add(name, rack=name)
        paper.jobs[name] = JOB
    for _ in range(12):
        faults = {name: paper.fault(name, "gpu.xid.62", "gpu3") for name in names}
        for _ in range(2):
            paper.step()
            for name, fault in faults.items():
                actions.update(paper.settle(name))
                clear(paper, name, fault)
            paper.later(minutes=5)
    assert dict(actions) == {"cordon": 10, "uncordon": 5}
