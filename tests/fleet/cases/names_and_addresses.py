"""Names of hosts and pools, and addresses: each code, wrong and right."""

from __future__ import annotations

from cases.case import Case, pool

CASES: dict[str, Case] = {
    "ASY0234": Case(
        pool("u: 2", "u: 2, bmc_address: 10.20.0.012"),
        pool("u: 2", "u: 2, bmc_address: 10.20.0.12"),
        "inventory/pool.yml:5:73",
    ),
    "ASY0235": Case(pool("n2:", '"n 2":'), pool("n2:", "n_2.rack-1:"), "inventory/pool.yml:5:5"),
    "ASY0236": Case(pool("pool-a:", "all:"), pool("pool-a:", "Pool_1.a:"), "inventory/pool.yml:4:5"),
}
