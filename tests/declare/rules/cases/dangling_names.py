"""Names that refer to nothing: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import FABRIC, NODE, Case, pool, replaced

FIRST_NODE = "inventory/pool.yml:4:73"

CASES: dict[str, Case] = {
    "ASY0020": Case(
        {"specs/zzz.yaml": NODE}, replaced("specs/zzz.yaml", NODE, "name: small", "name: large"), "specs/zzz.yaml:3:1"
    ),
    "ASY0021": Case(pool("node_spec: small", "node_spec: smal"), {}, "inventory/pool.yml:4:10"),
    "ASY0022": Case(pool("profile: managed", "profile: other"), {}, "inventory/pool.yml:4:28"),
    "ASY0023": Case(
        pool("u: 1,", "u: 1, fabric: net,"),
        {**pool("u: 1,", "u: 1, fabric: net,"), "specs/fabric.yaml": FABRIC},
        FIRST_NODE,
    ),
    "ASY0024": Case(
        replaced("specs/node.yaml", NODE, "firmware: bundle", "firmware: bundel"), {}, "specs/node.yaml:15:1"
    ),
    "ASY0025": Case(
        replaced("specs/fabric.yaml", FABRIC, "[n1, n2]", "[n1, n3]"),
        {"specs/fabric.yaml": FABRIC},
        "specs/fabric.yaml:4:1",
    ),
    "ASY0026": Case(pool("u: 1,", "u: 1, workloads: slurn,"), pool("u: 1,", "u: 1, workloads: none,"), FIRST_NODE),
}
