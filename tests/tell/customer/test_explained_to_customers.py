"""What customers are told of a node in each situation: plain words, nothing internal, no promise without support."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.scheduler import CustomerJob
from assay.decide.state.service_absences import list_fleet_absences
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outcome import RecordedOutcome
from assay.model.specs.customers import FaultCustomerWords, StateCustomerWords
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.policy_response import respond_to_class
from assay.tell.customer.customer_explanation import (
    CustomerSituation,
    explain_to_customer,
    find_harm,
    format_customer_explanation,
    name_part,
)

RECORDED = Path(__file__).with_name("customer_explanations.md")
INTERNAL = re.compile(
    r"::|/|\b[0-9a-f]{8,}\b|\bS?XID|\bann\b|\balice\b|planted|secret|suites|\brun-|\bfault-|\bn\d|NVRM|specs|\{|_[a-z]"
    r"|production-|\btriage|\bzap|seatrial|\brma\b",
    re.IGNORECASE,
)
"""What no customer may read: ids, codes, paths, names of people, of other nodes, of states, and what a person typed."""
DETAIL = "NVRM: Xid (PCI:0000:61:00): 119, pid=4242, name=/home/alice/secret.py"
NO_WORDS = {"for_customers": StateCustomerWords()}


class Story:
    """A paper whose failures are kept, and that tells what customers are told of node n1."""

    def __init__(self, paper: Any) -> None:
        self.paper = paper
        self.failures: dict[str, RecordedOutcome] = {}

    def serve(self, *names: str) -> None:
        for name in names or ("n1",):
            self.paper.add(name)
        self.paper.later(hours=1)

    def fill(self) -> None:
        """Add nodes, so that limits leave room."""
        for number in range(11, 31):
            self.paper.add(f"n{number}", rack=f"r{number}")

    def fault(self, fault_class: str, part: str = "", node: str = "n1", **more: Any) -> str:
        return str(self.paper.fault(node, fault_class, part, **{"detail": DETAIL, **more}))

    def decide(self, minutes: float = 1) -> None:
        self.paper.step()
        self.paper.later(minutes=minutes)

    def effect(self, action: str, standing: str = "verified", jobs: Iterable[str] = ()) -> None:
        """Take an effect of the present stay, or of what is pending, to a standing."""
        story = self.paper.story("n1")
        decision = story.pending.decision if story.pending else story.decision
        effect, at = derive_id(decision, action), self.paper.now.isoformat()
        body = {"effect": effect, "action": action, "decision": decision, "before": {"jobs": [*jobs]}, "params": {}}
        self.paper.write(LedgerEntry(effect, at, "effect.intent", "n1", body))
        self.paper.later(minutes=3)
        if standing != "intent":
            self.paper.effect("n1", standing, decision, action, "at /srv/secret")

    def fail(self, phase: str) -> None:
        self.paper.judge("n1", phase, "fail", "suites/t.py::test_burn says /srv/secret")
        for one in self.paper.outcomes["n1"].values():
            self.failures[one.id] = one

    def restart(self) -> None:
        """Let n1 be closed, emptied and restarted."""
        for action in ("cordon", "drain-now", "collect", "reboot"):
            self.effect(action)
        self.paper.later(minutes=5)

    def come_back(self, node: str = "n1") -> None:
        for _ in range(4):
            self.paper.settle(node)
            self.paper.pass_all(node)
            self.decide()

    def move(self, to: str) -> None:
        self.paper.say("move", "n1", to=to, reason="secret plan of ann")
        for _ in range(2):
            self.decide()
            self.paper.settle("n1")
            self.paper.jobs["n1"] = ()

    def situation(self, policy: Any = None) -> CustomerSituation:
        paper = self.paper
        intents = [entry for entry in paper.log.values() if (entry.kind, entry.node) == ("effect.intent", "n1")]
        ended = {entry.body["effect"] for entry in intents if entry.body["before"].get("jobs")}
        return CustomerSituation(
            paper.story("n1"),
            list_fleet_absences([policy or paper.policy], paper.stories().values()),
            policy or paper.policy,
            paper.catalog,
            paper.now,
            [*self.failures.values()],
            frozenset(ended),
        )


@pytest.fixture
def story(paper) -> Story:
    return Story(paper)


def test_a_gpu_is_named_also_where_only_a_check_of_the_node_tells_of_it(story: Story) -> None:
    story.serve()
    story.fill()
    story.fault("gpu.missing", severity="catastrophic", detail="GPU_SXM_5 (gpu4) is Critical")
    story.decide()
    assert "(GPU 4)" in explain_to_customer(story.situation()).happened


SITUATIONS: dict[str, Callable[[Story], Any]] = {}


def situation(tell: Callable[[Story], Any]) -> Callable[[Story], Any]:
    SITUATIONS[tell.__name__] = tell
    return tell


@situation
def a_node_serves(story: Story) -> None:
    story.serve()


@situation
def a_node_is_new_and_is_found(story: Story) -> None:
    story.paper.add("n1", "discovered")


@situation
def a_new_node_starts(story: Story) -> None:
    story.paper.add("n1", "initializing")


@situation
def a_new_node_is_inspected(story: Story) -> None:
    story.paper.add("n1", "onboard")


@situation
def a_new_node_fails_its_first_tests(story: Story) -> None:
    story.paper.add("n1", "seatrial")
    story.fail("seatrial")
    story.decide()


@situation
def a_new_node_gets_its_firmware(story: Story) -> None:
    story.paper.add("n1", "seatrial")
    story.paper.pass_all("n1")
    story.decide()
    story.effect("zap", "intent")


@situation
def the_firmware_of_a_new_node_cannot_be_installed(story: Story) -> None:
    a_new_node_gets_its_firmware(story)
    story.effect("zap", "failed")
    story.decide()


@situation
def a_new_node_is_tested_for_a_day(story: Story) -> None:
    a_new_node_gets_its_firmware(story)
    story.effect("zap")
    story.paper.pass_all("n1")
    story.decide()
    story.effect("burn-in")
    story.paper.judge("n1", "production")


@situation
def a_test_of_a_day_takes_longer_than_planned(story: Story) -> None:
    a_new_node_is_tested_for_a_day(story)
    story.paper.later(hours=60)


@situation
def a_gpu_fails_and_jobs_are_ended(story: Story) -> None:
    story.serve()
    story.fault("gpu.xid.79", "gpu3")
    story.decide()
    story.effect("cordon")
    story.effect("drain-now", jobs=["job 17 (secret-train, alice)"])
    story.effect("reboot", "intent")


@situation
def a_gpu_fails_and_no_job_was_running(story: Story) -> None:
    story.serve()
    story.fault("gpu.xid.79", "gpu3")
    story.fault("gpu.missing", severity="catastrophic")
    story.decide()
    story.effect("cordon")
    story.effect("drain-now")


@situation
def a_restarted_node_is_tested(story: Story) -> None:
    story.serve()
    story.fault("gpu.xid.79", "gpu0")
    story.decide()
    story.restart()
    story.paper.judge("n1", "test")


@situation
def a_node_serves_again(story: Story) -> None:
    a_gpu_fails_and_jobs_are_ended(story)
    story.effect("reboot")
    story.come_back()


@situation
def a_node_serves_again_since_eight_days(story: Story) -> None:
    a_node_serves_again(story)
    story.paper.later(days=8)


@situation
def a_node_serves_again_and_fails_again_while_a_limit_holds_the_repair_back(story: Story) -> None:
    story.paper.add("n2")
    a_node_serves_again(story)
    story.fault("gpu.xid.79", "gpu1", node="n2")
    story.decide()
    story.fault("gpu.xid.119", "gpu3")
    story.decide()


@situation
def a_restart_does_not_help(story: Story) -> None:
    a_gpu_fails_and_no_job_was_running(story)
    story.effect("reboot")
    story.paper.later(minutes=10)
    story.fail("test")
    story.decide()
    story.paper.settle("n1")


@situation
def a_restart_fails(story: Story) -> None:
    a_gpu_fails_and_no_job_was_running(story)
    story.effect("reboot", "failed")
    story.decide()


@situation
def the_kernel_is_stuck(story: Story) -> None:
    story.serve()
    story.fault("host.kernel.deadlock")
    story.decide()
    story.effect("powercycle", "intent")


@situation
def a_technician_looks_for_the_cause(story: Story) -> None:
    a_restart_does_not_help(story)
    story.decide()
    story.paper.settle("n1")


@situation
def a_technician_takes_long(story: Story) -> None:
    a_technician_looks_for_the_cause(story)
    story.paper.later(hours=80)
    story.decide()


@situation
def a_technician_repairs_the_node(story: Story) -> None:
    a_technician_looks_for_the_cause(story)
    story.paper.say("certified", "n1", reason="secret of ann")
    story.decide()


@situation
def a_node_goes_back_to_its_vendor(story: Story) -> None:
    a_technician_repairs_the_node(story)
    story.move("rma")


@situation
def a_node_is_gone_for_good(story: Story) -> None:
    a_technician_repairs_the_node(story)
    story.move("retired")


@situation
def a_hot_gpu_waits_for_the_job_and_its_end_is_known(story: Story) -> None:
    story.serve()
    job = CustomerJob(
        "17", "secret-train", "alice", "", "by its time limit until 2026-11-22T18:00:00+00:00 at the latest"
    )
    story.paper.jobs["n1"] = (str(job),)
    story.fault("gpu.thermal", "gpu3")
    story.decide()
    story.effect("cordon")


@situation
def a_fault_waits_for_the_job_and_the_node_is_still_open(story: Story) -> None:
    story.serve()
    story.paper.jobs["n1"] = ("job 17 (secret-train, alice)",)
    story.fault("gpu.xid.62", "gpu3")
    story.decide()


@situation
def staff_want_the_node_when_it_is_idle(story: Story) -> None:
    story.serve()
    story.paper.jobs["n1"] = ("job 17 (secret-train, alice)",)
    story.paper.say("move", "n1", to="triage", reason="secret plan of ann")
    story.decide()
    story.effect("cordon")


@situation
def staff_took_the_node(story: Story) -> None:
    story.serve()
    story.move("triage")
    story.decide()


@situation
def staff_hold_a_node_that_is_out(story: Story) -> None:
    a_technician_looks_for_the_cause(story)
    story.paper.say("hold", "n1", reason="secret of ann")


@situation
def staff_hold_a_node_until_a_time(story: Story) -> None:
    a_technician_looks_for_the_cause(story)
    story.paper.say("hold", "n1", reason="secret of ann", until="2026-11-30T08:00:00+00:00")


@situation
def staff_hold_a_node_that_serves(story: Story) -> None:
    story.serve()
    story.paper.say("hold", "n1", reason="secret of ann")


@situation
def a_rack_that_is_one_machine_is_short(story: Story) -> None:
    for index in range(1, 19):
        story.paper.add(f"n{index}", "production" if index < 16 else "test", rack="r9", kind="gb200-nvl72")
    story.decide()
    story.effect("cordon")


@situation
def a_limit_holds_the_repair_back(story: Story) -> None:
    story.serve("n1", "n2")
    story.fault("gpu.xid.79", "gpu1", node="n2")
    story.decide()
    story.fault("gpu.xid.95", "gpu3")
    story.decide()


@situation
def many_nodes_fail_at_once(story: Story) -> None:
    names = [f"n{number}" for number in range(1, 9)]
    story.serve(*names)
    for name in names:
        story.fault("gpu.xid.79", "gpu0", node=name)
    story.decide()


@situation
def a_fault_of_an_unmanaged_node_is_only_reported(story: Story) -> None:
    story.paper.add("n1", profile="unmanaged")
    story.fault("gpu.xid.79", "gpu0")
    story.decide()


@situation
def everything_fails(story: Story) -> None:
    story.serve()
    for part in ("gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5"):
        story.fault("gpu.xid.79", part)
    story.fault("gpu.xid.48", "gpu6")
    story.fault("host.memory.uncorrected", "P1-DIMMA1 of alice")
    story.fault("pcie.fatal", "0000:9d:00.0")
    story.fault("ib.hca.missing", "mlx5_2", severity="catastrophic")
    story.decide()


@situation
def earlier_cases_tell_how_long_it_takes(story: Story) -> None:
    story.fill()
    for number, hours in zip(range(11, 18), (1, 1, 2, 2, 3, 4, 9), strict=True):
        story.fault("gpu.xid.79", "gpu0", node=f"n{number}")
        story.decide()
        story.paper.later(hours=hours)
        for _ in range(3):
            story.come_back(f"n{number}")
        story.paper.later(hours=1)
    a_gpu_fails_and_no_job_was_running(story)


@situation
def a_case_takes_longer_than_nine_of_ten_earlier_ones(story: Story) -> None:
    earlier_cases_tell_how_long_it_takes(story)
    story.paper.later(hours=24)


@situation
def the_policy_has_no_such_state(story: Story) -> None:
    story.serve()
    body = {"from": "production", "to": "secret-state", "decision": ""}
    story.paper.write(LedgerEntry("t1", story.paper.now.isoformat(), "transition", "n1", body))


def tell(story: Story, name: str) -> CustomerSituation:
    SITUATIONS[name](story)
    return story.situation()


def test_what_customers_are_told_is_as_recorded(new_paper, tmp_path):
    """If a change of the texts is right, put the file that this test names in place of the recorded one."""
    texts = [
        f"## {name.replace('_', ' ')}\n\n{format_customer_explanation(explained)}\n"
        for name in SITUATIONS
        for explained in [explain_to_customer(tell(Story(new_paper()), name))]
    ]
    told = "\n".join(["# What customers are told, by situation\n", *texts])
    written = tmp_path / RECORDED.name
    written.write_text(told)
    assert told == RECORDED.read_text(), f"compare {RECORDED} with {written}"


@pytest.mark.parametrize("name", SITUATIONS)
def test_customers_are_told_nothing_internal(story, name):
    told = explain_to_customer(tell(story, name))
    texts = "\n".join(getattr(told, key) for key in ("happened", "means", "doing", "back"))
    assert INTERNAL.findall(texts.replace("n1", "")) == [], texts
    assert all(getattr(told, key) for key in ("happened", "means", "doing", "back"))


@pytest.mark.parametrize("leak", ["run-3", "a/b::c", "9f8e7d6c5b4a3921", "XID 79", "ask ann", "specs", "n17", "triage"])
def test_the_test_of_internals_would_find_them(leak):
    assert INTERNAL.search(leak)


def test_each_state_of_the_shipped_policy_has_words(policy):
    for name, state in policy.states.items():
        words = state.for_customers
        assert words.means, name
        assert words.doing, name
        assert words.back or state.in_service or state.final, name
        assert not INTERNAL.search(f"{words.means} {words.doing} {words.back}"), name


def test_each_class_that_takes_a_node_out_has_words(policy, catalog):
    acting = {
        title
        for title, one in catalog.classes.items()
        for name in (one.list_xid_names() or [title])
        if respond_to_class(policy, catalog, "production", name, in_use=True).moves_node
    }
    assert len(acting) > 50
    assert {title for title in acting if not catalog.classes[title].for_customers.means} == set()


def test_the_words_of_every_class_are_plain(new_paper, catalog):
    for title, one in catalog.classes.items():
        name = (one.list_xid_names() or [title])[0]
        story = Story(new_paper())
        story.serve()
        story.fault(name, "gpu3")
        story.move("triage")
        told = explain_to_customer(story.situation())
        said = f"{told.happened} {told.means}"
        assert not INTERNAL.search(said), f"{title}: {said}"


def test_a_policy_and_a_catalogue_without_words_are_told_in_general_ones(story, policy, catalog):
    a_gpu_fails_and_no_job_was_running(story)
    bare = policy.model_copy(
        update={"states": {name: one.model_copy(update=NO_WORDS) for name, one in policy.states.items()}}
    )
    classes = {
        name: one.model_copy(update={"for_customers": FaultCustomerWords()}) for name, one in catalog.classes.items()
    }
    story.paper.catalog = FaultCatalog(kind="FaultCatalog", name="bare", sources=catalog.sources, classes=classes)
    told = explain_to_customer(story.situation(bare))
    assert ": the GPU has fallen off the bus (GPU 3)" in told.happened
    assert (told.means, told.doing[:20]) == ("The node takes no new jobs.", "We work on the node.")


def test_without_a_policy_or_a_catalogue_the_answer_is_general(story):
    a_gpu_fails_and_no_job_was_running(story)
    state = story.paper.story("n1")
    told = explain_to_customer(CustomerSituation(state, [], None, None, story.paper.now))
    assert told.means == "The node takes no new jobs."
    assert told.back == "When it is back is not known yet: the work on it must be finished first."


def test_jobs_count_as_ended_only_once_that_is_verified(story):
    story.serve()
    story.fault("gpu.xid.79", "gpu3")
    story.decide()
    story.effect("drain-now", "intent", jobs=["job 17 (secret-train, alice)"])
    assert "were ended" not in explain_to_customer(story.situation()).means
    story.effect("drain-now", jobs=["job 17 (secret-train, alice)"])
    assert "were ended at 2026-11-21 13:07 UTC" in explain_to_customer(story.situation()).means


def test_a_latest_end_is_told_only_if_each_job_has_one(story):
    a_hot_gpu_waits_for_the_job_and_its_end_is_known(story)
    assert "at 2026-11-22 18:00 UTC at the latest" in explain_to_customer(story.situation()).back
    story.paper.later(days=2)
    assert "at the latest" not in explain_to_customer(story.situation()).back


def test_a_time_that_has_passed_is_not_promised(story):
    a_restarted_node_is_tested(story)
    before = explain_to_customer(story.situation()).back
    assert before.startswith("It should be back by 2026-11-21 15:00 UTC if its tests pass")
    story.paper.later(hours=3)
    told = explain_to_customer(story.situation()).back
    unknown = "When it is back is not known yet: it must pass its tests after the restart."
    assert told == f"It takes longer than planned. {unknown}"


def test_a_placeholder_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"the only placeholder is \{since\}"):
        FaultCustomerWords(means="Broken since {when}.")
    assert FaultCustomerWords(means="Broken since {since}.").means


def test_spans_are_measured_to_the_minute(story):
    a_node_serves_again(story)
    absence = story.situation().absence
    assert absence is not None
    assert absence.ended_at is not None
    assert timedelta(minutes=5) < absence.ended_at - absence.began_at < timedelta(hours=1)


def test_a_node_that_serves_tells_the_faults_that_harm_jobs_and_no_others(story):
    story.serve()
    story.fault("psu.failed", "psu3")
    dead_supply = explain_to_customer(story.situation())
    assert dead_supply.happened == "The node is in service, since 2026-11-21 12:00 UTC."
    assert find_harm(story.paper.catalog, story.paper.story("n1")) == []
    story.fault("gpu.thermal", "gpu3")
    hot = explain_to_customer(story.situation())
    assert hot.happened.startswith("The node is in service with a fault: a GPU runs hot (GPU 3), first seen at ")
    assert hot.means.startswith("Jobs on this node may have run more slowly than usual since ")
    assert [incident.cause.part for incident in find_harm(story.paper.catalog, story.paper.story("n1"))] == ["gpu3"]


def test_a_part_that_jobs_do_not_use_has_no_name():
    parts = ("gpu3", "mlx5_2", "nvme1", "psu3", "fan2", "nvswitch1", "P1-DIMMA1 of alice")
    assert [name_part(part) for part in parts] == ["GPU 3", "InfiniBand port mlx5_2", "drive 1", "", "", "", ""]


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_sentence_is_said_twice(story, name):
    told = explain_to_customer(tell(story, name))
    sentences = [each for line in told.lines for each in re.split(r"(?<=[.]) ", line)]
    assert len(sentences) == len(set(sentences)), sentences
    assert len(" ".join(told.lines).split()) <= 110


def test_an_order_took_the_node_out_and_no_older_fault(story):
    story.serve()
    story.fault("psu.failed", "psu3")
    story.decide()
    story.paper.later(hours=5)
    story.move("triage")
    assert story.paper.story("n1").noted_causes, "in its state, the old fault is noted"
    told = explain_to_customer(story.situation())
    assert told.happened.endswith(" for work by our staff.")
