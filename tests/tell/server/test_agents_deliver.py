"""The whole: a line that a node's kernel writes becomes a fault in the ledger, once, whoever is killed meanwhile."""

from __future__ import annotations

import hashlib
import json
import random
import re
import signal
import ssl
import subprocess
import time

import pytest
import trustme

from assay.observe.evidence_store import EvidenceStore
from assay.observe.last_seen import LastSeen
from tests.support.site_of_agents import ASSAY, BOOT, PATIENCE_S, TOKENS, Site, digest


def received(site: Site, node: str = "n0003") -> int:
    """Return how many items the server has taken from a node."""
    found = LastSeen(site.fleet / ".assay/heard.sqlite").positions().get(node)
    return found.received if found else 0


def disks(count: int, first: int = 0) -> list[str]:
    """Return lines of as many disks: every line is a fault of its own."""
    return [f"blk_update_request: I/O error, dev disk{number}, sector 1" for number in range(first, first + count)]


def each_once(site: Site, count: int) -> None:
    """Hold that every line came once: one fault each, told once, counted once."""
    site.wait_for(lambda: len(site.faults("disk.errors")) >= count, f"{count} faults are stored")
    faults = site.faults("disk.errors")
    assert len({one.body["subject"] for one in faults}) == len(faults) == count
    assert {one.body["count"] for one in faults} == {1}
    site.wait_for(lambda: received(site) >= count, "all is acknowledged")
    assert received(site) == count


def test_a_kernel_line_becomes_a_fault_in_the_ledger(shared):
    site, node = shared, shared.node("n0003")
    site.agent(node)
    node.says("usb 1-1: nothing to see", level=6)
    node.xid(79)
    (fault,) = site.wait_for(lambda: site.faults(node="n0003"), "the fault is stored")
    assert (fault.node, fault.body["class"], fault.body["severity"]) == ("n0003", "gpu.xid.79", "catastrophic")
    assert fault.body["marks"] == {"kernel": f"{BOOT}:2"}
    site.wait_for(lambda: not node.waiting(), "the buffer is empty")
    assert received(site) == 1


def test_explain_says_what_the_agent_told_and_what_it_costs(shared):
    node = shared.node("n0011")
    shared.agent(node)
    node.xid(79)
    shared.wait_for(lambda: shared.faults(node="n0011"), "the fault is stored")
    command = [*ASSAY, "explain", "n0011", "--fleet", str(shared.fleet)]
    shared.wait_for(lambda: received(shared, "n0011"), "it is acknowledged")
    said = subprocess.run([*command, "--full"], capture_output=True, text=True, check=True).stdout
    assert re.search(
        r"its agent was last in contact \d+ s ago and has delivered 1 item; "
        r"it has used \d+\.\d CPU s and holds \d+ MiB",
        " ".join(said.split()),
    )
    told = json.loads(subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    assert [one["class"] for one in told["incidents"]] == ["gpu.xid.79"]
    assert "has delivered 1 item; " in told["agent"]
    assert [(each["class"], each["part"]) for each in told["incidents"]] == [("gpu.xid.79", "gpu0")]
    assert told["next"]["who"] == "assay"


def test_what_was_said_while_nobody_listened_is_delivered_later_in_order(site):
    node = site.node()
    site.serve()
    site.kill(site.server)
    agent = site.agent(node)
    node.says(*disks(20))
    site.wait_for(lambda: "cannot be reached" in site.log("agent-n0003"), "the agent has said so")
    site.wait_for(lambda: (node.state / "buffer.sqlite").exists() and node.waiting() == 20, "the lines are kept")
    assert site.kill(agent, signal.SIGTERM) == 0
    site.serve()
    site.agent(node)
    each_once(site, 20)
    marks = [one.body["marks"]["kernel"] for one in site.faults()]
    assert sorted(marks, key=lambda mark: int(mark.rpartition(":")[2])) == [f"{BOOT}:{n}" for n in range(1, 21)]


def hunted(site: Site, *, lines: int, rounds: int) -> None:
    """Kill the agent and the server, again and again, while a node's kernel has something to say."""
    chance, node, written = random.Random(5), site.node(), 0
    site.serve()
    agent = site.agent(node)
    for turn in range(rounds):
        for _ in range(lines // rounds // 5):
            node.says(*disks(5, written))
            written += 5
            time.sleep(chance.uniform(0, 0.02))
        site.kill(agent)
        if turn % 3 == 1:
            site.kill(site.server)
            site.serve()
        agent = site.agent(node)
        time.sleep(chance.uniform(0, 0.6))
    each_once(site, written)


def test_a_killed_agent_and_a_killed_server_lose_and_double_nothing(site):
    hunted(site, lines=60, rounds=3)


@pytest.mark.slow
def test_killed_at_many_moments_they_lose_and_double_nothing(site):
    site.limit(node={"open_faults": 2000})
    hunted(site, lines=1000, rounds=40)


def test_at_the_end_what_is_left_is_delivered(site):
    site.serve()
    node = site.node()
    agent = site.agent(node, "--linger", "30")
    site.wait_for(lambda: "accepts the items" in site.log("agent-n0003"), "the agent was heard once, and lingers now")
    node.says(*disks(3))
    site.wait_for(lambda: node.waiting() == 3, "the lines are kept")
    assert site.kill(agent, signal.SIGTERM) == 0
    each_once(site, 3)


def test_readings_that_an_agent_pushes_are_kept_as_evidence(shared):
    shared.agent(shared.node("n0004"), "--probe-every", "1")
    store = EvidenceStore(shared.fleet / ".assay/evidence")
    pushed = shared.wait_for(lambda: store.latest_pushed("n0004"), "readings are kept")
    assert set(pushed.channels) == {"probe"}
    assert pushed.read("probe", "host", "boot_id").value == BOOT


def test_an_agent_tells_on_which_machine_it_runs(shared):
    node = shared.node("n0012")
    serial = node.root / "sys/class/dmi/id/product_serial"
    serial.parent.mkdir(parents=True)
    serial.write_text("A520112X4400099\n")
    shared.agent(node)
    shared.wait_for(lambda: "accepts the items" in shared.log("agent-n0012"), "the agent was heard once")
    node.xid()
    (fault,) = shared.wait_for(lambda: shared.faults(node="n0012"), "the fault is stored")
    assert fault.body["class"] == "identity.changed"
    assert "A520112X4400099" in fault.body["detail"]


def test_pushed_readings_name_the_ledgers_last_entry_that_the_agent_knew_before_it_read(site):
    site.serve()
    node = site.node()
    node.xid()
    site.agent(node, "--probe-every", "1")
    site.wait_for(lambda: site.faults(node="n0003"), "the fault is in the ledger")
    store = EvidenceStore(site.fleet / ".assay/evidence")
    site.wait_for(
        lambda: (pushed := store.latest_pushed("n0003")) and (pushed.after_entry or 0) >= 2,
        "readings are newer than the fault's entry",
    )


def test_a_token_that_is_not_the_nodes_is_told_once_and_nothing_is_lost(shared):
    node = shared.node("n0005")
    shared.agent(node, token="stolen-token-5e0c")
    node.xid()
    shared.wait_for(lambda: "401" in shared.log("agent-n0005"), "the agent says why")
    shared.wait_for(lambda: node.waiting() == 1, "the line is kept")
    assert shared.faults(node="n0005") == []
    assert "stolen-token" not in shared.log("agent-n0005") + shared.log("serve")


def test_a_token_that_is_changed_on_both_sides_is_taken_without_a_restart(site):
    (site.fleet / "inventory/agents.yml").unlink()
    (site.home / "secret").write_text("an-old-token-71aa\n")
    (site.fleet / "inventory/one.yml").write_text(
        f"h100-a: {{hosts: {{n0003: {{agent_token: {{file: {site.home / 'secret'}}}}}}}}}\n"
    )
    site.serve()
    assert site.post("n0003", b"{}", "an-old-token-71aa")[0] == 422
    (site.home / "secret").write_text(f"sha256:{digest('a-new-token-93bc')}\n")
    site.wait_for(lambda: site.post("n0003", b"{}", "a-new-token-93bc")[0] == 422, "the new token is taken")


def test_only_the_pinned_certificate_is_spoken_to(shared):
    node = shared.node("n0006")
    agent = shared.agent(node, "--fingerprint", "00" * 32)
    node.xid()
    shared.wait_for(lambda: "not the pinned one" in shared.log("agent-n0006"), "the agent says why")
    assert received(shared, "n0006") == 0
    shared.kill(agent)
    shared.agent(node, "--fingerprint", f"sha256 Fingerprint={fingerprint(shared)}")  # as openssl prints it
    shared.wait_for(lambda: shared.faults(node="n0006"), "the fault is stored")


def fingerprint(site: Site) -> str:
    whole = (site.home / "server.pem").read_text()
    leaf = whole[whole.index("-----BEGIN CERTIFICATE") :].partition("-----END CERTIFICATE-----")[0]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(leaf + "-----END CERTIFICATE-----\n")).hexdigest()


def test_a_server_that_no_authority_vouches_for_gets_nothing(shared):
    other = shared.home / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    node = shared.node("n0007")
    shared.agent(node, "--ca", str(other))
    node.xid()
    shared.wait_for(lambda: "not trusted" in shared.log("agent-n0007"), "the agent says why")
    assert received(shared, "n0007") == 0


def test_one_agent_works_in_a_state_folder(site):
    node = site.node()
    site.port = 1
    site.agent(node)
    site.wait_for(lambda: (node.state / "lock").exists() and "follows" in site.log("agent-n0003"), "one works")
    assert site.agent(node).wait(PATIENCE_S) == 2
    assert "another agent" in site.log("agent-n0003")


def test_two_nodes_are_told_apart(shared):
    for name, number in (("n0008", 79), ("n0009", 48)):
        node = shared.node(name)
        shared.agent(node)
        node.xid(number)
    (one,) = shared.wait_for(lambda: shared.faults(node="n0008"), "the first is stored")
    (other,) = shared.wait_for(lambda: shared.faults(node="n0009"), "the second is stored")
    assert (one.body["class"], other.body["class"]) == ("gpu.xid.79", "gpu.xid.48")
    assert TOKENS["n0008"] not in shared.log("serve")


@pytest.mark.slow
def test_a_full_disk_ends_no_agent_and_what_the_kernel_still_has_comes_later(site):
    site.limit(node={"open_faults": 2000})
    node = site.node()
    site.serve()
    site.kill(site.server)
    small = site.agent(node, before=["bash", "-c", 'ulimit -f 100; exec "$@"', "-"])
    node.says(*disks(1500))
    site.wait_for(lambda: "the buffer cannot be written" in site.log("agent-n0003"), "the agent says so")
    assert small.poll() is None
    site.kill(small)
    site.serve()
    site.agent(node)
    each_once(site, 1500)
