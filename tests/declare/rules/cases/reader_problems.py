"""Problems that the reader itself reports: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import NODE, POOL, Case, pool, replaced

CASES: dict[str, Case] = {
    "ASY0001": Case({"specs/x.yaml": "a: 1\na: 2\n"}, {"specs/x.txt": "a: 1\na: 2\n"}, "specs/x.yaml:2:1"),
    "ASY0002": Case(replaced("specs/node.yaml", NODE, "NodeSpec", "NodeSpek"), {}, "specs/node.yaml:2:1"),
    "ASY0003": Case(
        replaced("specs/node.yaml", NODE, "fans: 1", "fans: one"),
        replaced("specs/node.yaml", NODE, "fans: 1", "fans: 2"),
        "specs/node.yaml:10:1",
    ),
    "ASY0004": Case(
        replaced("specs/node.yaml", NODE, "needed: 1", "needed: 3"),
        replaced("specs/node.yaml", NODE, "needed: 1", "needed: 2"),
        "specs/node.yaml:9:18",
    ),
    "ASY0005": Case(
        {"specs/large.yaml": "kind: NodeSpec\nname: large\nextends: smal\n"},
        {"specs/large.yaml": "kind: NodeSpec\nname: large\nextends: small\n"},
        "specs/large.yaml:3:1",
    ),
    "ASY0006": Case(
        {
            "specs/a.yaml": "kind: NodeSpec\nname: a\nextends: b\n",
            "specs/b.yaml": "kind: NodeSpec\nname: b\nextends: a\n",
        },
        {
            "specs/a.yaml": "kind: NodeSpec\nname: a\nextends: b\n",
            "specs/b.yaml": "kind: NodeSpec\nname: b\nextends: small\n",
        },
        "specs/a.yaml:3:1",
    ),
    "ASY0010": Case(
        pool("  hosts", "  var: {}\n  hosts"), pool("  hosts", "  vars: {}\n  hosts"), "inventory/pool.yml:3:3"
    ),
    "ASY0011": Case({"inventory/pool.yml": "# nobody\n"}, {}, "inventory"),
    "ASY0012": Case(pool("u: 2", 'u: "2"'), pool("u: 2", "u: 3"), "inventory/pool.yml:5:67"),
    "ASY0013": Case({"inventory/pool.yml": POOL + "    n3: {}\n"}, {}, "inventory/pool.yml:6:5"),
}
