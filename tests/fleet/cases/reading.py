"""What the reader itself notices: each code, wrong and right."""

from __future__ import annotations

from cases.case import NODE, POOL, Case, one, pool

CASES: dict[str, Case] = {
    "ASY0001": Case({"specs/x.yaml": "a: 1\na: 2\n"}, {"specs/x.txt": "a: 1\na: 2\n"}, "specs/x.yaml:2:1"),
    "ASY0002": Case(one("specs/node.yaml", NODE, "NodeSpec", "NodeSpek"), {}, "specs/node.yaml:2:1"),
    "ASY0003": Case(
        one("specs/node.yaml", NODE, "fans: 1", "fans: one"),
        one("specs/node.yaml", NODE, "fans: 1", "fans: 2"),
        "specs/node.yaml:10:1",
    ),
    "ASY0010": Case(
        pool("  hosts", "  var: {}\n  hosts"), pool("  hosts", "  vars: {}\n  hosts"), "inventory/pool.yml:3:3"
    ),
    "ASY0011": Case({"inventory/pool.yml": "# nobody\n"}, {}, "inventory"),
    "ASY0012": Case(pool("u: 2", 'u: "2"'), pool("u: 2", "u: 3"), "inventory/pool.yml:5:67"),
    "ASY0013": Case({"inventory/pool.yml": POOL + "    n3: {}\n"}, {}, "inventory/pool.yml:6:5"),
}
