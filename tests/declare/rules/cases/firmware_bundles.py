"""Firmware bundles: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import BUNDLE, Case, replaced

SECOND = """  - name: bios
    version: "2"
    inventory: [BIOS]
    artifact:
      {url: firmware/bmc.bin, sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad}
    push: simple
    reset: host
    order: 2
"""
TWO = BUNDLE + SECOND
AFTER = TWO + "    after: [bmc]\n"
FILE = "specs/bundle.yaml"
ZAP = """- hosts: all
  tasks:
    - assay.fleet.firmware:
        components: [bmc]
"""
SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

CASES: dict[str, Case] = {
    "ASY0040": Case({"firmware/bmc.bin": None}, {}, "specs/bundle.yaml:9:8"),
    "ASY0041": Case({"firmware/bmc.bin": "abd"}, {"firmware/other.bin": "abd"}, "specs/bundle.yaml:9:31"),
    "ASY0042": Case(
        replaced("specs/bundle.yaml", TWO, "[BIOS]", "[BIOS, BMC]"),
        {"specs/bundle.yaml": TWO},
        "specs/bundle.yaml:15:5",
    ),
    "ASY0043": Case(
        replaced("specs/bundle.yaml", TWO, "order: 2", "order: 1"),
        replaced("specs/bundle.yaml", TWO, "reset: host\n    order: 2", "reset: bmc\n    order: 1"),
        "specs/bundle.yaml:19:5",
    ),
    "ASY0044": Case(
        replaced("specs/bundle.yaml", TWO, "name: bios", "name: bmc"),
        {"specs/bundle.yaml": TWO},
        "specs/bundle.yaml:13:5",
    ),
    "ASY0045": Case(
        replaced(FILE, AFTER, "order: 1\n", "order: 1\n    after: [bios]\n"), {FILE: AFTER}, "specs/bundle.yaml:13:5"
    ),
    "ASY0046": Case(replaced(FILE, AFTER, "[bmc]", "[bmcc]"), {FILE: AFTER}, "specs/bundle.yaml:21:5"),
    "ASY0047": Case(replaced(FILE, AFTER, "order: 2", "order: 0"), {FILE: AFTER}, "specs/bundle.yaml:20:5"),
    "ASY0270": Case(
        {FILE: TWO, "playbooks/zap.yml": ZAP},
        {FILE: TWO, "playbooks/zap.yml": ZAP.replace("[bmc]", "[bmc, bios]")},
        "specs/bundle.yaml:13:5",
    ),
    "ASY0271": Case(
        {"playbooks/mine.yml": ZAP.replace("[bmc]", "[bmc, bios]")},
        {"playbooks/mine.yml": ZAP},
        "playbooks/mine.yml:4:27",
    ),
    "ASY0048": Case(
        replaced(FILE, BUNDLE, f", sha256: {SHA256}", ""),
        replaced(FILE, BUNDLE, SHA256, f'"{SHA256}"'),
        "specs/bundle.yaml:8:5",
    ),
}
