"""Racks: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import NODE, POOL, Case, pool, replaced

TALL = {"specs/node.yaml": NODE.replace("fans:", "height_u: 2\nfans:")}
WHOLE = NODE.replace("fans:", "rack: {nodes: 2, gpus: 2}\nfans:")
PAIR = {"specs/node.yaml": WHOLE}
LONE = {"specs/lone.yaml": NODE.replace("name: small", "name: lone")}
THIRD = POOL + "    n3: {node_spec: lone, profile: managed, site: lab, rack: r1, u: 3, serial_number: S3}\n"

DOMAIN = """
kind: FabricDesign
name: links
rate: 2xXDR
nvlink: {compute_trays: [n1, n2], rack: r1}
"""
LINKED = {"specs/domain.yaml": DOMAIN}

CASES: dict[str, Case] = {
    "ASY0039": Case(TALL, {**TALL, **pool("u: 2", "u: 3")}, "inventory/pool.yml:5:67"),
    "ASY0105": Case(
        {**PAIR, **pool("rack: r1, u: 2", "rack: r2, u: 2")},
        {**PAIR, **pool("rack: r1, u: 2", "rack: r1, u: 5")},
        "inventory/pool.yml:4:57",
    ),
    "ASY0106": Case(
        {**PAIR, **LONE, "inventory/pool.yml": THIRD},
        {**PAIR, **LONE, "inventory/pool.yml": THIRD.replace("rack: r1, u: 3", "rack: r2, u: 3")},
        "inventory/pool.yml:6:56",
    ),
    "ASY0108": Case({**LINKED, **pool("rack: r1, u: 2", "rack: r2, u: 2")}, LINKED, "specs/domain.yaml:5:10"),
    "ASY0107": Case(replaced("specs/node.yaml", WHOLE, "gpus: 2", "gpus: 4"), PAIR, "specs/node.yaml:10:18"),
}
