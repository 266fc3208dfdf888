"""Lifecycle policies, management profiles and checklists: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import NODE, POLICY, Case, replaced
from tests.support.places import SMALLEST

ATTIC = POLICY.replace("edges:", "  attic: {summary: lost}\nedges:\n  attic: [production]")
LADDER = POLICY.replace("rungs: {}", "rungs: {triage: {to: onboard}}")
CLOSED = POLICY.replace("certified_to: production", "fail_to: production")
SOAK = POLICY.replace("certified_to", "soak_hours: 2, deadline: {hours: 3}, certified_to")
WIDE = POLICY.replace("pool_percent: 50", "pool_percent: 100")
PAIRS = POLICY + "racks: {pairs: {node_specs: [small], of: 2, more_than: 1}}\n"
PAIR = NODE.replace("fans:", "rack: {nodes: 2, gpus: 2}\nfans:")


PROFILE = (SMALLEST / "specs/profile.yaml").read_text()
BACK = replaced("specs/policy.yaml", POLICY, "in_service: true", "in_service: true, entry: [uncordon]")


CHECKLISTS_FILE = "specs/checklists.yaml"
STEPS = "{title: Look, steps: [Look], done: Looked}"


def checklist(state: str) -> dict[str, str | None]:
    return {CHECKLISTS_FILE: f"kind: Checklists\nname: ours\nsources: [us]\nstates: {{{state}: {STEPS}}}\n"}


def customer_of(pool: str) -> dict[str, str | None]:
    return {"specs/policy.yaml": f"{POLICY}access: {{visitors: {{acme: {{role: customer, pools: [{pool}]}}}}}}\n"}


CASES: dict[str, Case] = {
    "ASY0070": Case(
        {"specs/policy.yaml": ATTIC},
        replaced("specs/policy.yaml", ATTIC, "production: [onboard", "production: [attic, onboard"),
        "specs/policy.yaml:8:3",
    ),
    "ASY0071": Case(
        replaced("specs/policy.yaml", POLICY, "watch: [production]", "watch: [fabric]"),
        replaced("specs/policy.yaml", POLICY, "watch: [production]", "watch: []"),
        "specs/policy.yaml:7:51",
    ),
    "ASY0074": Case(
        replaced("specs/policy2.yaml", POLICY, "name: policy", "name: other"), {}, "specs/policy2.yaml:3:1"
    ),
    "ASY0075": Case(
        {"specs/policy.yaml": CLOSED},
        replaced("specs/policy.yaml", CLOSED, "fail_to", "deadline: {hours: 1, to: production}, fail_to"),
        "specs/policy.yaml:6:3",
    ),
    "ASY0076": Case(
        replaced("specs/policy.yaml", LADDER, "certified_to", "pass_to"),
        {"specs/policy.yaml": LADDER},
        "specs/policy.yaml:13:35",
    ),
    "ASY0077": Case(
        replaced("specs/policy.yaml", POLICY, "any: {", "any: {severity: [degraded], "),
        replaced("specs/policy.yaml", POLICY, "  any: {", "  some: {severity: [degraded], timing: record}\n  any: {"),
        "specs/policy.yaml:12:3",
    ),
    "ASY0088": Case(
        replaced("specs/policy.yaml", POLICY, "certified_to: production", "certified_to: productoin"),
        {},
        "specs/policy.yaml:6:27",
    ),
    "ASY0190": Case(
        replaced("specs/policy.yaml", SOAK, "hours: 3", "hours: 2"),
        {"specs/policy.yaml": SOAK},
        "specs/policy.yaml:6:53",
    ),
    "ASY0191": Case(
        {**replaced("specs/policy.yaml", PAIRS, "more_than: 1", "more_than: 2"), "specs/node.yaml": PAIR},
        {"specs/policy.yaml": PAIRS, "specs/node.yaml": PAIR},
        "specs/policy.yaml:19:45",
    ),
    "ASY0223": Case(
        {"specs/policy.yaml": POLICY + "flapping: {clean_minutes: [30, 10]}\n"},
        {"specs/policy.yaml": POLICY + "flapping: {clean_minutes: [10, 30]}\n"},
        "specs/policy.yaml:19:12",
    ),
    "ASY0224": Case(
        {"specs/policy.yaml": LADDER.replace("rungs", "windows: [{hours: 1, times: 2}], rungs")},
        {"specs/policy.yaml": LADDER.replace("rungs", "windows: [{hours: 2, times: 2}], rungs")},
        "specs/policy.yaml:13:38",
    ),
    "ASY0225": Case(
        {"specs/policy.yaml": POLICY + "lemon: {threshold: 3, weights: {actions: {reboot: 3}}}\n"},
        {"specs/policy.yaml": POLICY + "lemon: {threshold: 4, weights: {actions: {reboot: 3}}}\n"},
        "specs/policy.yaml:19:43",
    ),
    "ASY0275": Case(
        replaced("specs/node.yaml", NODE, "psus:", "wipe: {source: us}\npsus:")
        | replaced("specs/profile.yaml", PROFILE, "actions: [", "actions: [wipe, "),
        replaced("specs/node.yaml", NODE, "psus:", "wipe: {source: us}\npsus:")
        | replaced("specs/profile.yaml", PROFILE, "actions: [", "may: [wipe]\nactions: [wipe, "),
        "specs/node.yaml:9:1",
    ),
    "ASY0274": Case(
        {"specs/policy.yaml": POLICY + "corrections: {at_once: [host.sysctls, nics.mtu]}\n"},
        {"specs/policy.yaml": POLICY + "corrections: {at_once: [host.sysctls], idle: [nics.mtu]}\n"},
        "specs/policy.yaml:19:39",
    ),
    "ASY0243": Case(
        replaced("specs/policy.yaml", POLICY, "window_hours: 1", "window_hours: 0.01"),
        replaced("specs/policy.yaml", POLICY, "window_hours: 1", "window_hours: 0.5"),
        "specs/policy.yaml:13:10",
    ),
    "ASY0244": Case(
        replaced("specs/policy.yaml", POLICY, "summary: new,", "summary: new, entry: [reboot],"),
        replaced("specs/policy.yaml", POLICY, "summary: new,", "summary: new, entry: [cordon, reboot],"),
        "specs/policy.yaml:6:27",
    ),
    "ASY0221": Case(
        replaced("specs/policy.yaml", WIDE, "min_nodes: 2", "min_nodes: 3"),
        {"specs/policy.yaml": WIDE},
        "specs/policy.yaml:15:24",
    ),
    "ASY0222": Case(
        replaced("specs/policy.yaml", POLICY, "percent: 50, min", "percent: 51, min"),
        {},
        "specs/policy.yaml:15:11",
    ),
    "ASY0192": Case(
        {"specs/policy.yaml": PAIRS},
        {"specs/policy.yaml": PAIRS, "specs/node.yaml": PAIR},
        "specs/policy.yaml:19:30",
    ),
    "ASY0100": Case(
        BACK, {**BACK, **replaced("specs/profile.yaml", PROFILE, "[reboot]", "[uncordon]")}, "specs/profile.yaml:5:1"
    ),
    "ASY0210": Case(checklist("onbord"), checklist("onboard"), f"{CHECKLISTS_FILE}:4:10"),
    "ASY0411": Case(
        {"specs/policy.yaml": POLICY.replace("trust: {fleet: act}", "trust: {fleet: act, pools: {elsewhere: watch}}")},
        {"specs/policy.yaml": POLICY.replace("trust: {fleet: act}", "trust: {fleet: act, pools: {pool-a: watch}}")},
        "specs/policy.yaml:18:29",
    ),
    "ASY0412": Case(
        {"specs/policy.yaml": POLICY.replace("trust: {fleet: act}\n", "")},
        {"specs/policy.yaml": POLICY.replace("trust: {fleet: act}", "trust: {fleet: watch}")},
        "specs/policy.yaml:2:1",
    ),
    "ASY0350": Case(customer_of("elsewhere"), customer_of("pool-a"), "specs/policy.yaml:19:52"),
}
