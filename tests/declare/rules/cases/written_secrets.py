"""Secrets outside of values: each code, wrong and right. They are put together here, so that none is real."""

from __future__ import annotations

from tests.declare.rules.cases.case import POOL, Case, pool

TOLD = "# bmc password: " + "Hunter" + "2x\n"


def reference(text: str) -> dict[str, str | None]:
    return pool("u: 2", f"u: 2, bmc_credentials: {text}")


CASES: dict[str, Case] = {
    "ASY0247": Case(
        {"inventory/pool.yml": POOL + TOLD},
        {"inventory/pool.yml": POOL + "# bmc password: see the vault\n"},
        "inventory/pool.yml:6:1",
    ),
    "ASY0248": Case(reference("{env: 'admin:Hunter" + "2'}"), reference("{env: BMC_ADMIN}"), "inventory/pool.yml:5:73"),
}
