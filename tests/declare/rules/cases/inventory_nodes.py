"""Nodes of the inventory: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import FABRIC, NODE, POOL, Case, pool

OTHER_POOL = "pool-b:\n  hosts: {n2: {site: lab}}\n"
GUID = '"0xa088c203009a0106"'
HCA = 'hcas: [{name: mlx5_0, rail: 0, pci: "0000:18:00.0"}]'
RAIL = {"specs/node.yaml": NODE.replace("hcas: []", HCA)}
PIN = "sha256:" + "0a" * 32
FIRST_GUID = POOL.replace("rack:", f"hca_guids: [{GUID}], rack:", 1)

CASES: dict[str, Case] = {
    "ASY0034": Case(
        {"inventory/pool.yml": POOL + "pool-b:\n  hosts: {n2: }\n"},
        {"inventory/pool.yml": POOL + "pool-b:\n  hosts: {n2: {pool: pool-b}}\n"},
        "inventory/pool.yml:5:5",
    ),
    "ASY0035": Case(
        {"inventory/pool.yml": FIRST_GUID},
        {"inventory/pool.yml": FIRST_GUID.replace("u: 2", f"hca_guids: [{GUID.replace('06', '16')}], u: 2"), **RAIL},
        "inventory/pool.yml:4:57",
    ),
    "ASY0237": Case(
        {"specs/fabric.yaml": FABRIC, **pool("n2: {", "n3: {fabric: net, ")},
        {"specs/fabric.yaml": FABRIC, **pool("n2: {", "n2: {fabric: net, ")},
        "inventory/pool.yml:5:10",
    ),
    "ASY0238": Case(
        RAIL,
        {**RAIL, "inventory/pool.yml": POOL.replace("rack:", "fabric: net, rack:")},
        "inventory/pool.yml:4:10",
    ),
    "ASY0036": Case(
        pool("u: 2", "u: 2, bmc_adress: 10.0.0.1"), pool("u: 2", "u: 2, our_own: 1"), "inventory/pool.yml:5:73"
    ),
    "ASY0037": Case(
        {"inventory/other.yml": OTHER_POOL},
        {"inventory/other.yml": OTHER_POOL.replace("site: lab", "our_own: 1")},
        "inventory/pool.yml:5:5",
    ),
    "ASY0150": Case(
        {"inventory/pool.yml": POOL.replace("rack:", f"bmc_ca: ca.pem, bmc_fingerprint: {PIN}, rack:", 1)},
        {"inventory/pool.yml": POOL.replace("rack:", f"bmc_fingerprint: {PIN}, rack:", 1)},
        "inventory/pool.yml:4:73",
    ),
}
