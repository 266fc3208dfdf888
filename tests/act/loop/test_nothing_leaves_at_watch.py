"""At `watch`, no path reaches a machine, a scheduler or another service. Each has a recorder, and a control."""

from __future__ import annotations

import ast
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from assay.act.actions.action import EffectIntent, EffectVerification
from assay.act.boot import boot_requests, joins
from assay.act.boot.boot_requests import BootingMachine, BootRefusal, answer_machine
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects import pending_effect_runner as runner
from assay.act.ingest import collection
from assay.act.ingest.bmc_takeovers import take_over
from assay.act.ingest.burn_ins import BurnInFollower
from assay.act.orders.orders import refuse_watched_move
from assay.act.schedules import idle_verification
from assay.act.schedules.idle_visits import find_exclusion
from assay.adapters.scheduler import SchedulerNodeStatus
from assay.cli.verbs.slurm import build_hook_config
from assay.decide.state.node_projection import project_node_states
from assay.model.decision import LOOKING_ACTIONS, PAPERWORK, ActionName, Decision, DecisionCause
from assay.model.entries.node_entries import DecisionEntry, TransitionEntry
from assay.model.errors import AssayError
from assay.model.specs.customers import NoticeRules
from assay.model.specs.policy_sections import LifecycleState
from assay.model.specs.trust_rules import TrustRules
from assay.tell.messages import customer_teller, delivery
from tests.act.quiet_site import FLEET, NODES, Site
from tests.support.places import ROOT

NODE = NODES[0]
OUTWARD = [action for action in get_args(ActionName) if action not in PAPERWORK]
SOURCE = ROOT / "src" / "assay"
REACHES_OUT = {
    "cordon_many", "uncordon", "drain", "run_spare", "show_notices", "undrain_verified", "undrain_if_supported",
    "make_bootstrap_token", "BmcTakeover", "ask_burn_in", "open_sink", "make_started_entry", "stream_evidence",
    "list_adapter_orders", "load_idle_node", "rank_nodes",
}  # fmt: skip
"""What reaches out when it is called. The adapters, actions and the lab behind them are called by nobody else."""
ROOMS_BEHIND = ("adapters/", "lab/", "node/", "observe/", "act/actions/", "act/remedies/", "act/boot/network_boot.py")
GATED = {
    "act/effects/pending_effect_runner.py": "the runner asks before it batches",
    "act/schedules/idle_verification.py": "find_exclusion, and uncordons only at act",
    "act/schedules/idle_visits.py": "find_exclusion",
    "act/ingest/collection.py": "loads no watched node",
    "act/ingest/trend_evaluation.py": "drops watched nodes",
    "act/ingest/burn_ins.py": "starts no burn-in again",
    "act/boot/boot_requests.py": "refuses the start",
    "act/boot/joins.py": "refuses the secret",
    "act/ingest/bmc_takeovers.py": "refuses",
    "tell/messages/scheduler_notices.py": "the teller drops watched nodes",
    "tell/messages/delivery.py": "tickets of watched nodes stay here",
    "tell/messages/digest.py": "gets its tickets from ticket_delivery",
    "cli/verbs/observe.py": "refuses --active",
}


def at_step(*, in_lab: bool = False, **rules: Any):
    """Return the example fleet with these rules of trust. What may act is its lab: its machines are examples."""
    policy = FLEET.policy
    states = dict(policy.states) | {f"does-{one}": LifecycleState(summary="x", entry=[one]) for one in OUTWARD}
    notices = NoticeRules.model_validate({"scheduler": {"shown": True}})
    made = policy.model_copy(update={"trust": TrustRules(**rules), "states": states, "notices": notices})
    return replace(FLEET, policies={policy.name: made}, is_lab=in_lab)


WATCH, SUGGEST, ACT = at_step(fleet="watch"), at_step(fleet="suggest"), at_step(fleet="act", in_lab=True)


class Recorder:
    """An action, a scheduler and a sink that only record that they were called."""

    patience_s, undone_by, places_jobs, is_local = 0.0, "", True, False

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before(self, *_: Any) -> dict[str, Any]:
        return {}

    def run(self, _: Any, intent: EffectIntent) -> None:
        self.calls.append(intent.action)

    def verify(self, *_: Any) -> EffectVerification:
        return EffectVerification(bool(self.calls), "recorded")

    def read_statuses(self, nodes: Any) -> dict[str, SchedulerNodeStatus]:
        return {node: SchedulerNodeStatus((), "assay: x" if "uncordon" not in self.calls else "") for node in nodes}

    def cordon_many(self, reasons: Any) -> None:
        self.calls.append("cordon")

    def uncordon(self, node: str) -> None:
        self.calls.append("uncordon")

    def read_cordon_reason(self, node: str) -> str:
        return ""


FAULT = (DecisionCause("fault", "f1", "as planted"),)


def decided(site: Site, action: str, why: tuple[DecisionCause, ...] = FAULT, rule: str = "p.yaml:1 planted") -> str:
    """Let the node be in a state that does the action on arrival; return the decision."""
    ident, at = f"decision-{action}", site.desk.now
    made = Decision(ident, NODE, "production", f"does-{action}", "immediate", rule, "", why)
    moved = TransitionEntry("production", f"does-{action}", ident)
    site.ledger.append(
        DecisionEntry.from_decision(made).make_entry(ident, at, NODE), moved.make_entry(f"move-{action}", at, NODE)
    )
    return ident


@pytest.mark.parametrize("fleet", [WATCH, SUGGEST], ids=["watch", "suggest"])
@pytest.mark.parametrize("action", OUTWARD)
def test_no_action_runs_whoever_asks_for_it(site, monkeypatch, action, fleet):
    there = Recorder()
    monkeypatch.setattr(runner, "load_action", lambda _: there)
    desk = replace(site.desk, fleet=fleet, workloads=lambda _: there)
    decision = decided(site, action)
    intent = EffectIntent("e1", action, NODE, decision, "as planted")
    if action in LOOKING_ACTIONS and fleet is SUGGEST:
        attempt = steps.run_action(desk, there, intent)
        assert "refused on a real machine" in attempt.error, "what only looks waits for no yes"
        return
    runner.run_effects(desk)
    attempt = steps.run_action(desk, there, intent)
    assert there.calls == []
    assert attempt.is_unfinished
    assert any("person's yes" in line or "only watches" in line for line in site.said)
    allowed = steps.run_action(replace(desk, fleet=ACT), there, intent)
    assert (there.calls, allowed.error) == ([action], ""), "the control: at act, the same order is carried out"


def test_a_cordon_runs_at_act(site):
    there = Recorder()
    there.read_statuses = lambda nodes: {  # type: ignore[method-assign]
        node: SchedulerNodeStatus((), "assay: x" if there.calls else "") for node in nodes
    }
    decided(site, "cordon")
    runner.run_effects(replace(site.desk, fleet=ACT, workloads=lambda _: there))
    assert there.calls == ["cordon"]


def test_every_path_outwards_is_listed():
    found = set()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(ROOMS_BEHIND):
            continue
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls}
        if names & REACHES_OUT:
            found.add(name)
    assert found == set(GATED), "a new path outwards must ask Fleet.find_trust, and be listed here"


def test_idle_nodes_get_no_load(site):
    state = project_node_states(site.ledger.entries())[NODE]
    left_out = find_exclusion(replace(site.desk, fleet=WATCH), state, SchedulerNodeStatus())
    assert left_out is not None
    assert "only watches" in left_out.reason
    assert find_exclusion(replace(site.desk, fleet=ACT), state, SchedulerNodeStatus()) is None


@pytest.mark.parametrize(("fleet", "given_back"), [(WATCH, []), (SUGGEST, []), (ACT, ["uncordon"])])
def test_a_cordon_is_not_lifted_after_a_verification(site, fleet, given_back):
    there = Recorder()
    desk = replace(site.desk, fleet=fleet, workloads=lambda _: there)
    task = SimpleNamespace(id="t", line=SimpleNamespace(name="s", target="p"), slot=site.clock.now())
    list(idle_verification._give_back_nodes(desk, task, {NODE: "assay: x"}, site.clock.now()))
    assert there.calls == given_back


@pytest.mark.parametrize(("fleet", "loaded"), [(WATCH, set()), (ACT, {NODE})])
def test_tests_load_no_node(site, monkeypatch, fleet, loaded):
    asked: set[str] = set()

    def stream(*_: Any, active: dict[str, Any], **__: Any):
        asked.update(active)
        yield from ()

    monkeypatch.setattr(collection, "stream_evidence", stream)
    monkeypatch.setattr(collection, "find_due_parts", lambda *_: ("memory",))
    monkeypatch.setattr(collection, "StoredDocuments", lambda *_: None)
    views = [SimpleNamespace(name=NODE)]
    with pytest.raises(KeyError):  # nothing was collected
        collection.collect_node_evidence(
            replace(site.desk, fleet=fleet),
            SimpleNamespace(nodes=views),
            [NODE],  # type: ignore[arg-type]
        )
    assert asked == loaded


@pytest.mark.parametrize(("fleet", "asked"), [(WATCH, []), (ACT, ["start"])])
def test_a_burn_in_is_not_started_again(site, monkeypatch, fleet, asked):
    done: list[str] = []
    running = SimpleNamespace(running=True)
    monkeypatch.setattr(
        "assay.act.ingest.burn_ins.ask_burn_in", lambda _, word, *__, **___: done.append(word) or running
    )
    monkeypatch.setattr("assay.act.ingest.burn_ins.make_plan_for", lambda *_, **__: {})
    record = SimpleNamespace(hours_done=1.0, held_hours=0.0, id="b", log="", line=0)
    follower = SimpleNamespace(
        record=record, spec=None, node=FLEET.nodes[NODE], transports=None, context=replace(site.desk, fleet=fleet)
    )
    BurnInFollower._go_on(follower)  # type: ignore[arg-type]
    assert done == asked


@pytest.mark.parametrize(("fleet", "delivered"), [(WATCH, []), (SUGGEST, [NODE]), (ACT, [NODE])])
def test_no_ticket_leaves_this_machine(site, monkeypatch, fleet, delivered):
    got: list[str] = []
    tickets = [SimpleNamespace(ticket=SimpleNamespace(node=NODE, id="t"))]
    monkeypatch.setattr(delivery, "read_projection", lambda *_: {"t": tickets[0]})
    monkeypatch.setattr(delivery, "list_ticket_routes", lambda *_: [SimpleNamespace(sink="far")])
    monkeypatch.setattr(delivery, "load_sink_class", lambda _: Recorder)
    monkeypatch.setattr(
        delivery, "_deliver_route", lambda _, __, given: got.extend(one.ticket.node for one in given) or []
    )
    delivery.deliver_tickets(replace(site.desk, fleet=fleet))
    assert got == delivered


@pytest.mark.parametrize(("fleet", "told"), [(WATCH, 0), (ACT, 1)])
def test_no_customer_is_told(site, monkeypatch, fleet, told):
    seen: list[int] = []
    teller = customer_teller.CustomerTeller()
    notice = SimpleNamespace(node=NODE, line="it left", standing=SimpleNamespace(in_service=False, move="a move"))
    teller._current = SimpleNamespace(read=lambda *_: [notice])  # type: ignore[assignment]
    monkeypatch.setattr(customer_teller, "show_on_nodes", lambda _, __, notices: seen.append(len(notices)))
    monkeypatch.setattr(customer_teller, "send_to_webhooks", lambda _, __, notices, *___: seen.append(len(notices)))
    teller(replace(site.desk, fleet=fleet))
    assert seen == [told, told]


def test_no_login_of_a_bmc_is_changed(site):
    with pytest.raises(AssayError, match="its trust step is watch"):
        take_over(replace(site.desk, fleet=WATCH), FLEET.nodes[NODE])
    with pytest.raises(AssayError, match="no delivery says"):
        take_over(replace(site.desk, fleet=ACT), FLEET.nodes[NODE])


def test_no_machine_gets_an_image(site, monkeypatch):
    monkeypatch.setattr(boot_requests, "refuse_spec", lambda *_: None)  # as if the image were the site's own
    node = FLEET.nodes[NODE]
    machine = BootingMachine("02:00:00:00:00:01", node.serial)
    answers = {}
    for step, fleet in (("watch", WATCH), ("suggest", SUGGEST), ("act", ACT)):
        there = replace(fleet)
        there.__dict__["boot_macs"] = {machine.mac: NODE}
        answers[step] = answer_machine(replace(site.desk, fleet=there), machine)
    assert "only watches" in getattr(answers["watch"], "reason", "")
    assert "nobody has said yes" in getattr(answers["suggest"], "reason", "")
    assert not isinstance(answers["act"], BootRefusal)


def test_no_secret_is_given_out(site, monkeypatch):
    made: list[str] = []
    monkeypatch.setattr(joins, "find_token_refusal", lambda *_: None)
    monkeypatch.setattr(joins, "_make_secret", lambda *_: made.append("secret") or "s")
    monkeypatch.setattr(joins, "use_token", lambda *_: None)
    asked = SimpleNamespace(node=NODE, purpose="kubernetes")
    with pytest.raises(AssayError, match="watch"):
        joins.redeem_token(replace(site.desk, fleet=WATCH), asked, "t", "192.0.2.7")  # type: ignore[arg-type]
    assert made == []
    joins.redeem_token(replace(site.desk, fleet=ACT), asked, "t", "192.0.2.7")  # type: ignore[arg-type]
    assert made == ["secret"]


def test_slurms_hooks_drain_nothing():
    assert build_hook_config(WATCH, WATCH.policy, FLEET.nodes[NODE])["drains"] == []
    assert build_hook_config(ACT, ACT.policy, FLEET.nodes[NODE])["drains"]


def test_an_order_is_refused_with_the_line_to_change(site):
    state = project_node_states(site.ledger.entries())[NODE]
    with pytest.raises(AssayError) as refused:
        refuse_watched_move(WATCH, state, "draining")
    assert "its trust step is watch" in str(refused.value)
    assert "specs/lifecycle/default.yaml:" in str(refused.value)
    refuse_watched_move(SUGGEST, state, "draining")
    site.later(minutes=1)
    assert timedelta(0) < timedelta(minutes=1)
