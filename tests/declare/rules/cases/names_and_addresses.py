"""Names of hosts and pools, and addresses: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import POOL, Case, pool

MACS = POOL.replace("rack:", 'mac: "02:00:00:00:00:0a", rack:', 1)
GUID = '"0xa088c203009a0106"'
FIRST_BMC = POOL.replace("rack:", "bmc_address: 10.0.0.1, rack:", 1)
FIRST_GUID = POOL.replace("rack:", f"hca_guids: [{GUID}], rack:", 1)

CASES: dict[str, Case] = {
    "ASY0234": Case(
        pool("u: 2", "u: 2, bmc_address: 10.20.0.012"),
        pool("u: 2", "u: 2, bmc_address: 10.20.0.12"),
        "inventory/pool.yml:5:73",
    ),
    "ASY0235": Case(pool("n2:", '"n 2":'), pool("n2:", "n_2.rack-1:"), "inventory/pool.yml:5:5"),
    "ASY0236": Case(pool("pool-a:", "all:"), pool("pool-a:", "Pool_1.a:"), "inventory/pool.yml:4:5"),
    "ASY0030": Case(pool("S2", "S1"), pool("S2", "S3"), "inventory/pool.yml:5:73"),
    "ASY0031": Case(
        {"inventory/pool.yml": POOL.replace("rack:", "bmc_address: 10.0.0.1, rack:")},
        {"inventory/pool.yml": FIRST_BMC.replace("rack: r1, u: 2", "bmc_address: 10.0.0.2, rack: r1, u: 2")},
        "inventory/pool.yml:5:57",
    ),
    "ASY0032": Case(
        {"inventory/pool.yml": POOL.replace("rack:", f"hca_guids: [{GUID}], rack:")},
        {"inventory/pool.yml": FIRST_GUID.replace("u: 2", f"hca_guids: [{GUID.replace('06', '16')}], u: 2")},
        "inventory/pool.yml:5:69",
    ),
    "ASY0033": Case(pool("u: 2", "u: 1"), pool("rack: r1, u: 2", "rack: r2, u: 1"), "inventory/pool.yml:5:67"),
    "ASY0097": Case(
        {"inventory/pool.yml": POOL.replace("rack:", "agent_token: {env: ONE}, rack:")},
        {"inventory/pool.yml": POOL.replace("rack:", "agent_token: {env: ONE}, rack:", 1)},
        "inventory/pool.yml:5:57",
    ),
    "ASY0038": Case(
        {"inventory/pool.yml": MACS.replace("u: 2", 'u: 2, bmc_mac: "02-00-00-00-00-0A"')},
        {"inventory/pool.yml": MACS.replace("u: 2", 'u: 2, bmc_mac: "02-00-00-00-00-0B"')},
        "inventory/pool.yml:5:73",
    ),
}
