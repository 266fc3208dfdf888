"""Burn-ins: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import POLICY, Case

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
    "ASY0314": Case({**named(), **burn_in()}, {**named(more="entry: [burn-in], "), **burn_in()}, f"{POLICY_FILE}:6:27"),
}
