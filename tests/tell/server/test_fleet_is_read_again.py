"""A server reads the fleet again when it changes, as the loop does: nothing is started anew after a merge."""

from __future__ import annotations

import json
import time

from tests.support.site_of_agents import BOOT, TOKENS, Site, batch

CATALOG = """kind: FaultCatalog
name: acme
description: Faults of a widget.
owner: us
sources: ["acme, the manual of the widget"]
classes:
  acme.widget:
    summary: A widget is gone.
    kernel_log: {pattern: 'acme: widget [0-9]+ gone', holds: ["acme: widget"]}
    severity: informational
    blame: hardware
    remedy: none
    source: "acme, the manual of the widget, page 7"
"""


def deliver(site: Site, seq: int, node: str = "n0003") -> tuple[int, dict]:
    body = {"boot": BOOT, "seq": seq, "t_s": 10.0 + seq, "text": "acme: widget 7 gone"}
    item = {"seq": seq, "kind": "kernel", "at": time.time(), "body": body}
    return site.post(node, json.dumps(batch(node, items=[item], after=seq - 1)).encode())


def test_new_specs_and_nodes_count_at_the_next_batch(site: Site) -> None:
    site.declare(*(name for name in TOKENS if name != "n0004"))
    site.serve()
    assert deliver(site, 1)[0] == 200
    assert site.faults("acme.widget") == [], "no rule knows it yet"
    assert deliver(site, 1, "n0004")[0] == 401

    (site.fleet / "specs/faults/acme.yaml").write_text(CATALOG)
    site.declare(*TOKENS)
    site.wait_for(lambda: "read the fleet again" in site.log("serve"), "the server reads the fleet again")
    status, answer = deliver(site, 2)
    assert (status, "acme: widget" in answer["words"]) == (200, True)
    assert [entry.body["count"] for entry in site.faults("acme.widget")] == [1]
    assert deliver(site, 1, "n0004")[0] == 200


def test_a_fleet_that_cannot_be_read_keeps_the_last_good_one_and_says_so(site: Site) -> None:
    catalog = site.fleet / "specs/faults/acme.yaml"
    catalog.write_text(CATALOG)
    site.serve()
    assert deliver(site, 1)[0] == 200
    catalog.write_text("kind: FaultCatalog\nclasses: [\n")
    site.wait_for(
        lambda: "cannot be used; goes on with what was read before" in site.log("serve"), "the server says so"
    )
    assert "acme.yaml" in site.log("serve")
    assert deliver(site, 2)[0] == 200
    assert len(site.faults("acme.widget")) == 2, "by the rule of the last good catalogue"

    catalog.write_text(CATALOG)
    site.wait_for(lambda: "read the fleet again" in site.log("serve"), "the server reads the mended fleet")
    assert site.log("serve").count("cannot be used") == 1
