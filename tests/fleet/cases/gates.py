"""Gates: each code, wrong and right."""

from __future__ import annotations

from cases.case import Case

FILE = "specs/gates.yaml"


def gates(pools: str) -> dict[str, str | None]:
    return {FILE: f"kind: Gates\nname: ours\nsources: [us]\npools: {{{pools}}}\n"}


OWN = "pool-a: {success_percent: 99}"

CASES: dict[str, Case] = {
    "ASY0180": Case(
        gates("pool-b: {success_percent: 99}"), gates(f"{OWN}, fabric: {{unknown_percent: 0}}"), f"{FILE}:4:9"
    ),
    "ASY0181": Case(
        gates(f"{OWN}, any: {{success_percent: 90, unknown_percent: 1}}"),
        gates(f"{OWN}, any: {{unknown_percent: 1}}"),
        f"{FILE}:4:46",
    ),
}
