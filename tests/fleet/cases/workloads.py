"""Settings of schedulers: each code, wrong and right."""

from __future__ import annotations

from cases.case import Case
from cases.transports import said

CASES: dict[str, Case] = {
    "ASY0220": Case(
        said("slurm_cordon: reservation"),
        said("workloads: slurm, slurm_cordon: reservation"),
        "inventory/pool.yml:5:57",
    ),
}
