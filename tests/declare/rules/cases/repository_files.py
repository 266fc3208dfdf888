"""Files that git does not hold, and files that assay does not read: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import NODE, POLICY, Case, Link

CONFLICT = "<<<<<<< yours\nB: 1\n||||||| before\nB: 2\n=======\nB: 3\n>>>>>>> assay 0.1.0\n"
CASES: dict[str, Case] = {
    "ASY0230": Case(
        {"specs/racks.csv": Link("/etc/hostname")},
        {"racks.csv": "", "specs/racks.csv": Link("../racks.csv")},
        "specs/racks.csv",
    ),
    "ASY0231": Case(
        {"specs/x.yaml": Link("y.yaml")}, {"racks.csv": "", "specs/x.csv": Link("../racks.csv")}, "specs/x.yaml"
    ),
    "ASY0232": Case({"specs/x.YAML": POLICY}, {"specs/x.md": "The policy says what follows.\n"}, "specs/x.YAML"),
    "ASY0233": Case(
        {"specs/own.yaml": POLICY, ".gitignore": "own*\n"},
        {"specs/other.yaml": POLICY, ".gitignore": "own*\n"},
        "specs/own.yaml",
    ),
    "ASY0249": Case(
        {"playbooks/own.py": f"A = 1\n{CONFLICT}", ".github/workflows/own.yml": CONFLICT},
        {"playbooks/own.py": "A = 1\n# <<<<<<< is how git marks a conflict\n=======\n", "README.md": CONFLICT},
        ".github/workflows/own.yml:1",
    ),
    "ASY0260": Case(
        {"specs/node.yaml": NODE.replace("fans: 1", "fans: 1  # review: taken from big, not read on this node")},
        {"specs/node.yaml": "# look at every `# review:`\n" + NODE},
        "specs/node.yaml:10",
    ),
}
