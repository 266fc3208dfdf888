"""Burn-ins: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import NODE, POLICY, Case, replaced

POLICY_FILE, FILE = "specs/policy.yaml", "specs/day.yaml"


def burn_in(
    hours: float = 4, name: str = "day", node_specs: str = "", part: str = "gpu_burn", needs: str = ""
) -> dict[str, str | None]:
    lines = [f"kind: BurnIn\nname: {name}\nsources: [us]\nnode_specs: [{node_specs}]", f"needs: [{needs}]"]
    lines += [f"phases: [{{name: heat, hours: {hours}, parts: [{part}]}}]", ""]
    return {f"specs/{name}.yaml": "\n".join(lines)}


def named(names: str = "day", more: str = "") -> dict[str, str | None]:
    """Return a policy whose state onboard names burn-ins."""
    return {POLICY_FILE: POLICY.replace("certified_to", f"burn_in: [{names}], {more}certified_to", 1)}


def step(kw: float, watts: float) -> dict[str, str | None]:
    """Return a burn-in whose steps have this limit, for a node that takes from 500 W to so many."""
    power = "".join(f"\n  {name}: {{value: {value:g}, unit: W, source: datasheet}}" for name, value in
                    (("node_power", watts), ("node_power_low", 500)))  # fmt: skip
    day = str(burn_in()["specs/day.yaml"]).replace("needs: []", f"needs: []\nstep_kw: {kw:g}")
    return {FILE: day, **replaced("specs/node.yaml", NODE, "limits:", f"limits:{power}")}


SOAK = "soak_hours: 4, "
LATE = "deadline: {hours: 5}, "

CASES: dict[str, Case] = {
    "ASY0310": Case({**named("dya"), **burn_in()}, {**named(), **burn_in()}, f"{POLICY_FILE}:6:37"),
    "ASY0311": Case(
        {**named(more=SOAK + LATE), **burn_in(5)}, {**named(more=SOAK + LATE), **burn_in(4)}, f"{POLICY_FILE}:6:37"
    ),
    "ASY0312": Case(burn_in(node_specs="smal"), burn_in(node_specs="small"), f"{FILE}:4:14"),
    "ASY0313": Case(
        {**named("day, night"), **burn_in(), **burn_in(name="night", node_specs="small")},
        {**named("night, day"), **burn_in(), **burn_in(name="night", node_specs="small")},
        f"{POLICY_FILE}:6:42",
    ),
    "ASY0317": Case(
        {**named(), **burn_in(part="ib_write_bw")}, {**named(), **burn_in(needs="nvidia")}, f"{POLICY_FILE}:6:37"
    ),
    "ASY0318": Case(step(9, 10_200), step(9.7, 10_200), f"{FILE}:6:1"),
    "ASY0314": Case({**named(), **burn_in()}, {**named(more="entry: [burn-in], "), **burn_in()}, f"{POLICY_FILE}:6:27"),
}
