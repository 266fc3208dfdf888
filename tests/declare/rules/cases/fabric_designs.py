"""Fabric designs: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import FABRIC, NODE, Case, replaced

FILE = "specs/fabric.yaml"
STORAGE = '{device: storage, guid: "0x0000000000000009", port: 1}'
LISTED = FABRIC + f"cables:\n  - {{a: {{device: leaf, port: 5}}, b: {STORAGE}}}\n"
TWO_TO_ONE = FABRIC.replace("down: 1..2, up: 3..4", "down: 1..4, up: 5..6")
RAIL = {"specs/node.yaml": NODE.replace("hcas: []", 'hcas: [{name: mlx5_0, rail: 0, pci: "0000:18:00.0"}]')}
IN_A_FILE = FABRIC.replace('[{guid: "0x0000000000000002", rack: n1, u: 2}]', "{file: specs/spines.csv}")
SPINES = "Name,Rack,U,GUID,Serial\nother,n1,9,0x9,S1\nspine,n1,2,0x2,S2\n"
RATED = NODE + "  hca_rate: {value: 400, unit: Gb/s, source: us}\n"

CASES: dict[str, Case] = {
    "ASY0080": Case(replaced(FILE, LISTED, "port: 5", "port: 3"), {FILE: LISTED}, f"{FILE}:11:6"),
    "ASY0081": Case(
        replaced(FILE, LISTED, "port: 5", "port: 9"), replaced(FILE, LISTED, "port: 5", "port: 8"), f"{FILE}:11:6"
    ),
    "ASY0082": Case({FILE: FABRIC}, {FILE: FABRIC, **RAIL}, "specs/node.yaml:6:1"),
    "ASY0083": Case(
        {FILE: TWO_TO_ONE}, replaced(FILE, TWO_TO_ONE, "rails: 1", "rails: 1\noversubscription: 2"), f"{FILE}:2:1"
    ),
    "ASY0084": Case(replaced(FILE, LISTED, "device: leaf", "device: lef"), {FILE: LISTED}, f"{FILE}:11:6"),
    "ASY0085": Case(replaced(FILE, FABRIC, "0002", "0001"), {FILE: FABRIC}, f"{FILE}:9:42"),
    "ASY0263": Case({FILE: FABRIC + "site: labor\n"}, {FILE: FABRIC + "site: lab\n"}, f"{FILE}:10:1"),
    "ASY0110": Case(
        {FILE: IN_A_FILE, "specs/spines.csv": SPINES.replace(",2,", ",two,")},
        {FILE: IN_A_FILE, "specs/spines.csv": SPINES},
        "specs/spines.csv:3:1",
    ),
    "ASY0086": Case(
        {FILE: FABRIC, **replaced("specs/node.yaml", RATED, "400", "800")},
        {FILE: FABRIC, "specs/node.yaml": RATED},
        f"{FILE}:6:1",
    ),
}
