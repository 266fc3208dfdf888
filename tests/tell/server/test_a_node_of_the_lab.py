"""An agent on a virtual node, with its kernel log and its NVML, beside the passes of the loop."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from assay.act.ingest.fault_recording import record_faults
from assay.act.ingest.silent_nodes import record_listening, record_silence
from assay.act.loop.context import ControllerContext as Work
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.cli.workspace import Workspace
from assay.declare.home import choose_context
from assay.lab.faults.injection import inject_fault
from assay.lab.node.stub import build_stub
from assay.lab.node.virtual_node import make_initial_state
from assay.lab.world import LabWorld
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_store import EvidenceStore
from tests.support.site_of_agents import TOKENS


@pytest.fixture
def lab(site):
    """Yield a lab of one node, without its BMC; it alone has an agent."""
    site.declare("n0003")
    choose_context(site.fleet, "lab")
    desk, now = Workspace(site.fleet), datetime.now(UTC)
    world = LabWorld(desk.home.world)
    world.home.mkdir(parents=True)
    world.set_clock(now, 1.0)
    fleet = desk.fleet
    with world.change("n0003") as state:
        state.update(make_initial_state(fleet.nodes["n0003"], fleet.spec_of("n0003"), fleet.bundle_of("n0003"), now))
    process = subprocess.Popen([sys.executable, "-c", "input()", str(world.home)], stdin=subprocess.PIPE)
    (world.home / "lab.json").write_text(json.dumps({"pid": process.pid}))  # all that answers of this lab
    (world.home / "inventory.yml").write_text(json.dumps({"all": {"hosts": {"n0003": {}}}}))
    yield world
    process.communicate(b"\n")


def shell(lab: LabWorld, *words: str) -> list[str]:
    return [sys.executable, "-m", "assay.lab.node.shell", str(lab.home), "n0003", *words]


def agent(site, lab: LabWorld, *words: str) -> subprocess.Popen[str]:
    (site.home / "token").write_text(TOKENS["n0003"])
    told = ["--server", site.url, "--token-file", str(site.home / "token"), "--ca", str(site.home / "ca.pem")]
    told += ["--state", str(site.home / "state"), "--node", "n0003", "--beat", "1", *words]
    started = site._start(shell(lab, "python3", "-m", "assay.node.agent", *told), "agent-n0003")
    site.wait_for(lambda: "follows" in site.log("agent-n0003"), "the agent follows")
    return started


def work(site) -> Work:
    desk = Workspace(site.fleet)
    return Work(desk.fleet, desk.ledger, EvidenceStore(desk.evidence_dir), desk.clock, desk.data_dir, desk.reports_dir)


def probed(site, lab: LabWorld) -> EvidenceDocument:
    """Return what a pass would read of the node."""
    command = shell(lab, "python3", "-m", "assay.node.probe")
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return EvidenceDocument("n0003", work(site).clock.now(), document)


def test_a_planted_xid_becomes_a_fault_and_no_pass_counts_it_again(site, lab):
    site.serve()
    agent(site, lab, "--no-events")
    inject_fault(lab, "gpu.xid", "n0003", {"gpu": 4, "xid": 79})
    (fault,) = site.wait_for(lambda: site.faults("gpu.xid.79"), "the fault is stored")
    assert fault.body["subject"] == "h100-a/n0003/gpu4"

    desk, seen = work(site), probed(site, lab)
    record_faults(desk, {"n0003": seen})
    assert [one.id for one in site.faults("gpu.xid.79")] == [fault.id]


def test_what_a_pass_has_counted_no_agent_counts_again(site, lab):
    site.serve()
    inject_fault(lab, "gpu.xid", "n0003", {"gpu": 4, "xid": 79})
    desk, seen = work(site), probed(site, lab)
    record_faults(desk, {"n0003": seen})
    (fault,) = site.faults("gpu.xid.79")
    agent(site, lab, "--no-events")
    inject_fault(lab, "gpu.xid", "n0003", {"gpu": 1, "xid": 48})
    site.wait_for(lambda: site.faults("gpu.xid.48"), "what is new is stored")
    assert [one.id for one in site.faults("gpu.xid.79")] == [fault.id]


def test_an_xid_that_the_kernel_and_nvml_both_tell_is_one(site, lab):
    if build_stub(lab.home / "lib") is None:
        pytest.skip("the lab's NVML cannot be built here: no C compiler (Debian: gcc)")
    site.serve()
    agent(site, lab)
    site.wait_for(lambda: told_of(site).get("nvml") == "", "NVML's events are followed")
    inject_fault(lab, "gpu.xid", "n0003", {"gpu": 4, "xid": 79})
    fault = site.wait_for(lambda: told_twice(site), "both have told")
    assert (fault.body["count"], fault.body["subject"]) == (1, "h100-a/n0003/gpu4")
    assert len({one.body["fault"] for one in site.faults()}) == 1


def told_of(site) -> dict:
    from assay.observe.last_seen import LastSeen

    found = LastSeen(site.fleet / ".assay-lab/heard.sqlite").positions().get("n0003")
    return dict(found.state) if found else {}


def told_twice(site):
    return next((one for one in site.faults("gpu.xid.79") if set(one.body["marks"]) == {"kernel", "nvml"}), None)


def test_an_agent_costs_little_and_says_so(site, lab):
    site.serve()
    agent(site, lab, "--no-events")
    said = site.wait_for(lambda: told_of(site), "a heartbeat came")
    assert said["rss_bytes"] < 64 * 1024 * 1024
    assert said["cpu_s"] < 5
    assert (said["log"], said["nvml"], said["missed"], said["dropped"]) == ("", "not asked for", 0, {})


def test_an_agent_that_dies_is_a_fault_of_its_own_and_one_that_comes_back_ends_it(site, lab):
    site.serve()
    running = agent(site, lab, "--no-events")
    site.wait_for(lambda: told_of(site), "a heartbeat came")
    site.kill(running, signal.SIGKILL)

    def minutes_later(minutes: int) -> list[str]:
        for _ in range(minutes):
            lab.jump(timedelta(minutes=1))
            record_listening(work(site))
        desk = work(site)
        record_silence(desk, FleetSnapshotCache(desk).build_states_snapshot())
        return [one.kind for one in desk.ledger.entries("n0003", ["fault", "fault.cleared"])]

    site.kill(site.server)
    assert minutes_later(4) == []
    assert minutes_later(3) == ["fault"]
    assert minutes_later(3) == ["fault"]
    site.serve()
    agent(site, lab, "--no-events")
    site.wait_for(lambda: minutes_later(0) == ["fault", "fault.cleared"], "the silence is over")
