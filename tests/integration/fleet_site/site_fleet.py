"""The fleet repository of a site: what `assay init` makes, with the site's machines in its inventory."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from assay.declare.starter.new_repository import create_repository
from tests.integration.fleet_site.bmc_recording import DOMAIN
from tests.integration.fleet_site.rehearsed_site import BMC_VARIABLE, SitePlaces

GIT = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
Pools = Mapping[str, Sequence[str]]
"""The pools of a site's fleet, and their machines."""
ONE_POOL: Pools = {"h100-a": ("gpu-01", "gpu-02")}
TWO_POOLS: Pools = {**ONE_POOL, "h100-b": ("gpu-03",)}


def list_machines(pools: Pools) -> list[str]:
    """Return the machines of all pools."""
    return [name for pool in pools.values() for name in pool]


def make_site_fleet(root: Path, places: SitePlaces, pools: Pools, slurm: str = "") -> None:
    """Make the repository at `root`, with one commit. Its machines serve already; pool `slurm` has that scheduler."""
    create_repository(root)
    for old in (root / "inventory").glob("*.yml"):
        old.unlink()
    numbers = {name: number for number, name in enumerate(list_machines(pools), 1)}
    for pool, names in pools.items():
        hosts = {name: _describe_machine(name, numbers[name], places) for name in names}
        variables = _describe_pool(names, places) | {"workloads": "slurm" if pool == slurm else "none"}
        (root / "inventory" / f"{pool}.yml").write_text(
            yaml.safe_dump({pool: {"vars": variables, "hosts": hosts}}, sort_keys=False)
        )
    for spec in (root / "specs" / "nodes").glob("*.yaml"):
        spec.write_text(spec.read_text().replace("lab1.example", DOMAIN))
    design = root / "specs" / "fabrics" / "compute.yaml"
    text = (
        design.read_text()
        .replace('"n0001..n0004"', f'"gpu-01..gpu-{len(numbers):02}"')
        .replace("site: lab1", "site: oslo")
    )
    design.write_text(text)
    route = {"kind": "TicketRoute", "name": "desk", "owner": "fleet-engineering"}
    route |= {"webhook": {"url": places.webhook_url, "credentials": {"env": BMC_VARIABLE}}}
    (root / "specs" / "tickets" / "desk.yaml").write_text(yaml.safe_dump(route, sort_keys=False))
    subprocess.run([*GIT, "init", "--quiet"], cwd=root, check=True)
    commit(root, "Our fleet")


def commit(root: Path, message: str) -> None:
    """Commit every change of the repository."""
    subprocess.run([*GIT, "add", "--all"], cwd=root, check=True)
    subprocess.run([*GIT, "commit", "--quiet", "--message", message], cwd=root, check=True)


def _describe_pool(names: Sequence[str], places: SitePlaces) -> dict[str, Any]:
    start = {"nodes": list(names), "reason": "they served before assay watched them", "expires": "2036-12-31"}
    return {
        "node_spec": "hgx-h100",
        "profile": "managed",
        "site": "oslo",
        "fabric": "compute",
        "service_import": start,
        "bmc_ca": str(places.ca),
        "bmc_credentials": {"env": BMC_VARIABLE},
    }


def _describe_machine(name: str, number: int, places: SitePlaces) -> dict[str, Any]:
    address, port = places.bmcs[name]
    guids = [f"0x9c63c00300{0xA17C00 + number:06x}"[:14] + f"{number:02x}{rail}6" for rail in range(8)]
    return {
        "rack": "a7",
        "u": 4 + 10 * (number - 1),
        "serial_number": f"A520337X48{12093 + 17 * number:05}",
        "bmc_address": address,
        "bmc_port": port,
        "hca_guids": guids,
    }
