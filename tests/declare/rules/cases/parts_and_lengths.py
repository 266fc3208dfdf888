"""Parts that are given twice, and numbers that no hardware has: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import FABRIC, NODE, Case, pool, replaced
from tests.support.places import SMALLEST

HCAS = 'hcas: [{{name: mlx5_0, rail: 0, pci: "0000:18:00.0"}}, {{name: {}, rail: 1, pci: "{}"}}]'


def hcas(name: str, pci: str) -> dict[str, str | None]:
    return replaced("specs/node.yaml", NODE, "hcas: []", HCAS.format(name, pci))


PROFILE = (SMALLEST / "specs/profile.yaml").read_text()
ZAP = "- hosts: all\n  tasks: [{assay.fleet.firmware: {}}]\n"
ZAPPED: dict[str, str | None] = {
    **replaced("specs/profile.yaml", PROFILE, "actions: [", "actions: [zap, "),
    "playbooks/zap.yml": ZAP,
}
CONFIGURE = "- hosts: all\n  roles: [assay.fleet.gpu_driver]\n"

CASES: dict[str, Case] = {
    "ASY0239": Case(hcas("mlx5_1", "1B:00.0"), hcas("mlx5_1", "0001:1b:00.0"), "specs/node.yaml:6:78"),
    "ASY0240": Case(hcas("mlx5_0", "0000:19:00.0"), hcas("mlx5_1", "0000:19:00.0"), "specs/node.yaml:6:55"),
    "ASY0241": Case(
        replaced("specs/node.yaml", NODE, "nics: []", "nics: [{name: eth0, speed_mbps: 100000, mtu: 90000}]"),
        replaced("specs/node.yaml", NODE, "nics: []", "nics: [{name: eth0, speed_mbps: 100000, mtu: 9000}]"),
        "specs/node.yaml:7:41",
    ),
    "ASY0272": Case(
        ZAPPED | {"playbooks/configure.yml": CONFIGURE.replace("gpu_driver", "sysctls")},
        ZAPPED | {"playbooks/configure.yml": CONFIGURE},
        "specs/node.yaml:14:1",
    ),
    "ASY0273": Case(
        replaced("specs/node.yaml", NODE, "limits:", 'host: {sysctls: {vm.swapiness: "1"}}\nlimits:'),
        replaced("specs/node.yaml", NODE, "limits:", 'host: {sysctls: {vm.swappiness: "1"}}\nlimits:'),
        "specs/node.yaml:16:18",
    ),
    "ASY0242": Case(pool("u: 2", "u: 53"), pool("u: 2", "u: 52, rack_height_u: 52"), "inventory/pool.yml:5:67"),
}
MISTAKES: list[tuple[str, dict[str, str | None]]] = [
    ("ASY0275", replaced("specs/profile.yaml", PROFILE, "actions: [", "may: [wipe]\nactions: [wipe, ")),
    ("ASY0272", ZAPPED),
    ("ASY0272", ZAPPED | {"playbooks/configure.yml": "- hosts: [\n"}),
    ("ASY0272", ZAPPED | {"playbooks/configure.yml": CONFIGURE.replace("assay.fleet.", "site.")}),
    ("ASY0241", replaced("specs/node.yaml", NODE, "memory_gib: 4", "memory_gib: 4000000")),
    (
        "ASY0241",
        replaced(
            "specs/node.yaml", NODE, "limits:", "host: {dimms: {count: 2, size_gib: 4, speed_mts: 4800}}\nlimits:"
        ),
    ),
    ("ASY0242", {"specs/fabric.yaml": FABRIC + "lengths: {leaf_spine: 100000}\n"}),
    ("ASY0242", pool("u: 2", "u: 52")),
    ("ASY0242", pool("u: 2", "u: 53, rack_height_u: 60")),
    ("ASY0242", pool("u: 2", "u: 43, rack_height_u: 42")),
    (
        "ASY0242",
        {
            **pool("u: 2", "u: 2, rack_height_u: 42"),
            **replaced("specs/fabric.yaml", FABRIC + "site: lab\n", "rack: n1, u: 2", "rack: r1, u: 43"),
        },
    ),
    ("ASY0242", replaced("specs/fabric.yaml", FABRIC, "rack: n1, u: 2", "rack: n1, u: 520")),
]
"""More mistakes of these codes."""
