"""One node's token fills neither the ledger nor the memory, holds up no other node, and hides nothing."""

from __future__ import annotations

import json
import time

from assay.decide.faults.detection import TELEMETRY_FLOODED
from assay.ledger.store import Ledger
from tests.support.site_of_agents import BOOT, Site, batch
from tests.tell.server.strangers import resident_mib

LIFE = "77777777-7777-7777-7777-777777777777"
MIB = 1024 * 1024


def deliver(site: Site, lines: list[str], first: int = 1, node: str = "n0003") -> tuple[int, dict]:
    """Deliver kernel lines, numbered from `first`."""
    items = [
        {
            "seq": seq,
            "kind": "kernel",
            "at": time.time(),
            "body": {"boot": BOOT, "seq": seq, "t_s": seq / 1000, "text": text},
        }
        for seq, text in enumerate(lines, first)
    ]
    return site.post(node, json.dumps(batch(node, LIFE, items=items)).encode())


def ledger_mib(site: Site) -> float:
    return sum(path.stat().st_size for path in (site.fleet / ".assay").glob("ledger.sqlite*")) / MIB


def invented(number: int, xid: int = 79) -> str:
    return f"NVRM: Xid (PCI:{number // 256:04x}:{number % 256:02x}:00): {xid}, pid=1"


def silent(number: int) -> str:
    return f"nfs: server s{number} not responding, still trying"


def test_thirty_thousand_invented_places_are_one_fault_and_cost_next_to_nothing(site):
    site.serve()
    assert deliver(site, [invented(0)], node="n0004")[0] == 200
    memory, ledger = resident_mib(site), ledger_mib(site)
    for number in range(6):
        lines = [invented(5000 + 5000 * number + place) for place in range(5000)]
        assert deliver(site, lines, 1 + 5000 * number)[0] == 200
    assert ledger_mib(site) - ledger < 2
    assert resident_mib(site) - memory < 150
    assert {one.body["subject"] for one in site.faults(node="n0003")} == {"h100-a/n0003/unknown part"}


def test_faults_of_invented_servers_are_bounded_and_the_rest_is_counted(site):
    site.serve()
    deliver(site, [], node="n0004")
    memory, ledger = resident_mib(site), ledger_mib(site)
    for number in range(6):
        lines = [silent(5000 * number + place) for place in range(5000)]
        assert deliver(site, lines, 1 + 5000 * number)[0] == 200
    assert ledger_mib(site) - ledger < 2
    assert resident_mib(site) - memory < 150
    flood = site.faults(TELEMETRY_FLOODED)[-1]
    kept = {one.body["fault"] for one in site.faults(node="n0003")} - {flood.body["fault"]}
    assert len(kept) + flood.body["count"] == 30_000
    assert deliver(site, ["NVRM: Xid (PCI:0000:1b:00): 79, pid=1"], 40_000)[0] == 200
    assert [one.body["severity"] for one in site.faults("gpu.xid.79")] == ["catastrophic"], "nothing hides it"


def test_a_node_that_delivers_too_much_must_wait_and_is_named_once_and_others_are_served(site):
    site.limit(node={"entries_at_once": 20, "entries_per_minute": 1})
    site.serve()
    lines = [silent(number) for number in range(30)]
    assert deliver(site, lines)[0] == 200
    for _ in range(3):
        status, answer = deliver(site, lines, 100)
        assert (status, answer["error"]) == (429, "n0003 delivers faults for more than 1 ledger entries a minute; wait")
    assert deliver(site, lines[:5], node="n0004")[0] == 200
    (flood,) = site.faults(TELEMETRY_FLOODED)
    assert (flood.node, flood.body["severity"]) == ("n0003", "degraded")
    assert flood.body["detail"].endswith("; the rest waits on the node")
    assert site.log("serve").count("it must wait") == 1


def test_a_node_that_delivers_too_many_bytes_must_wait(site):
    site.limit(node={"mib_at_once": 8, "mib_per_minute": 0.1})
    site.serve()
    noise = ["x" * 15_000] * 400
    assert [deliver(site, noise, 1 + 400 * number)[0] for number in range(3)] == [200, 200, 429]
    assert len(site.faults(TELEMETRY_FLOODED)) == 1


def test_losses_that_an_agent_invents_are_in_the_bounds_too(site):
    site.limit(node={"entries_at_once": 10, "entries_per_minute": 1})
    site.serve()
    state = batch()["agent"]
    statuses = []
    for number in range(20):
        life = f"{number:08x}-1111-1111-1111-111111111111"
        body = batch(life=life, agent={**state, "dropped": {"warnings": number + 1}})
        statuses.append(site.post("n0003", json.dumps(body).encode())[0])
    assert statuses[:10] == [200] * 10
    assert statuses[-5:] == [429] * 5
    ledger = Ledger.open(site.fleet / ".assay/ledger.sqlite")
    assert len(ledger.entries("n0003", ["observe.failed"])) <= 12
    ledger.close()
