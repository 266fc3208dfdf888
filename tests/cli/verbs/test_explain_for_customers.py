"""`assay explain --for customer` and `--for engineer`, as a person types them."""

from __future__ import annotations

import re

import pytest

from assay.model.ledger_entry import LedgerEntry

AT = "2026-11-21T12:05:00+00:00"
AGE = re.compile(r"\bread [^;:\n]+? ago\b")
LINE = "NVRM: Xid (PCI:0000:61:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 08 (0x00000004 0x00000040 0x00000000)"


def fail_a_gpu(ann, fault_class="gpu.xid.119", detail="pid=1, name=/home/alice/train"):
    fault = {
        "fault": "f1",
        "class": fault_class,
        "subject": "h100-a/n0003/gpu3",
        "severity": "catastrophic",
        "blame": "hardware",
        "remedy": "reset",
        "count": 1,
        "first_seen": AT,
        "last_seen": AT,
        "detail": detail,
        "marks": {},
        "times": [AT],
    }
    cause = {"kind": "fault", "id": "f1", "text": f"{fault_class} on h100-a/n0003/gpu3: {detail}"}
    decision = {
        "decision": "d1",
        "from": "production",
        "to": "production-reboot",
        "timing": "immediate",
        "rule": "r",
        "remedy": "reset",
        "because": [cause],
        "blockers": [],
    }
    ann.ledger().append(
        LedgerEntry("f1", AT, "fault", "n0003", fault),
        LedgerEntry("d1", AT, "decision", "n0003", decision),
        LedgerEntry(
            "t1", AT, "transition", "n0003", {"from": "production", "to": "production-reboot", "decision": "d1"}
        ),
    )


def test_a_customer_reads_three_short_texts_without_codes(ann):
    fail_a_gpu(ann)
    told = ann.reads("explain", "n0003", "--for", "customer")
    assert set(told) == {"node", "in_service", "since", "as_of", "happened", "means", "doing", "back", "context"}
    assert told["in_service"] is False
    assert told["happened"] == (
        "The node left service at 2026-11-21 12:05 UTC: a controller inside the GPU did not answer in time (GPU 3)."
    )
    text = ann.types("explain", "n0003", "--for", "customer")
    said = " ".join(text.split())
    places = [said.index(told[key]) for key in ("happened", "means", "doing", "back")]
    assert places == sorted(places)
    assert not [word for word in ("119", "xid", "alice", "h100-a", "d1", "production") if word in text]


def test_an_engineer_reads_what_a_code_means(ann):
    fail_a_gpu(ann)
    assert "The GPU's system processor (GSP) did not answer" in ann.types("explain", "n0003")
    told = ann.reads("explain", "n0003")
    (incident,) = told["incidents"]
    assert incident["happened"].startswith("The GPU's system processor (GSP)")
    assert "driver" in incident["act"]
    texts = [ann.types("explain", "n0003", *words) for words in ((), ("--for", "engineer"))]
    assert len({AGE.sub("read a while ago", text) for text in texts}) == 1, "they differ by when they were asked"


def test_an_engineer_reads_what_a_sub_code_means(ann):
    fail_a_gpu(ann, "gpu.xid.145", LINE)
    (incident,) = ann.reads("explain", "n0003")["incidents"]
    assert incident["seen"][1].startswith("sub-code: RLW_REMAP, link 08, status 0x00000040")


def test_a_fleet_without_a_fault_catalogue_explains_without_meanings(ann):
    fail_a_gpu(ann)
    for path in (ann.root / "specs" / "faults").glob("*.yaml"):
        path.unlink()
    told = ann.reads("explain", "n0003", "--for", "customer")
    assert "a fault of the node's hardware or software was reported (GPU 3)." in told["happened"]


def test_an_unknown_node_and_one_never_observed_are_refused_as_for_engineers(ann):
    for node in ("n9999", "n0005"):
        refused = ann.is_refused("explain", node, "--for", "customer")
        assert refused == ann.is_refused("explain", node)


@pytest.mark.parametrize("node", ["n0001", "n0002", "n0004"])
def test_every_node_can_be_explained_to_customers(ann, node):
    assert all(ann.reads("explain", node, "--for", "customer")[key] for key in ("happened", "means", "doing", "back"))
