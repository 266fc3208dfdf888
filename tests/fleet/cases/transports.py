"""Ways to a node's readings: each code, wrong and right."""

from __future__ import annotations

from cases.case import POOL, Case

PLACE = "rack: r1, u: 2"
TOKEN = "agent_token: {env: TOKEN}"


def said(variables: str) -> dict[str, str | None]:
    """Return the inventory with variables for its second node."""
    assert PLACE in POOL
    return {"inventory/pool.yml": POOL.replace(PLACE, f"{variables}, {PLACE}")}


def both(first: str, second: str) -> dict[str, str | None]:
    """Return the inventory with variables for either node."""
    return {"inventory/pool.yml": POOL.replace("rack:", f"{first}, rack:", 1).replace(PLACE, f"{second}, {PLACE}")}


CASES: dict[str, Case] = {
    "ASY0130": Case(
        said("slurm_step: {join: true}"), said("transport: slurm, slurm_step: {join: true}"), "inventory/pool.yml:5:57"
    ),
    "ASY0131": Case(
        both("transport: local", "transport: local"),
        both("transport: local", "transport: ssh"),
        "inventory/pool.yml:5:57",
    ),
    "ASY0132": Case(said("transport: push"), said(f"transport: push, {TOKEN}"), "inventory/pool.yml:5:57"),
}
