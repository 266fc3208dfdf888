"""The fleet of rollouts in a git repository: two components of firmware, nodes in two pools and racks of five."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.support.places import SMALLEST
from tests.support.signed_fleet import ROLLOUT_POLICY, SignedFleet
from tests.support.trusted import TRUSTED

LONG_MEANT = "trust: {fleet: act, order_hours: 8760, rollout_hours: 8760}\n"
"""Days pass between a kill and the next start of a controller here, and nobody gives an order again."""
POLICY = f"""{ROLLOUT_POLICY.replace(TRUSTED, LONG_MEANT)}
limits: {{pool_percent: 30, rack_concurrent: 2, reboots_per_hour: 10, per_minute: 600}}
breaker: {{percent: 25, min_nodes: 3, window_minutes: 5, drift: [firmware.drift]}}
"""
CHECKS = """
kind: CheckCatalog
name: checks
checks:
  - {id: "suites/test_heat.py::test_heat", subject: node, phases: [production], fault: gpu.hot}
  - {id: "suites/test_heat.py::test_firmware", subject: node, phases: [production], fault: firmware.drift}
"""
SUITE = """
import pytest


@pytest.mark.phase("production")
@pytest.mark.fault("gpu.hot")
def test_heat(node, limits):
    assert node.heat < limits.gpu_temperature


@pytest.mark.phase("production")
@pytest.mark.fault("firmware.drift")
def test_firmware(node, bundle):
    assert node.firmware == bundle
"""
DRIFT = """
  firmware.drift:
    {summary: another version, source: us, check: true, severity: degraded, blame: hardware, remedy: ticket}
"""
COMPONENT = """
  - {{name: {name}, version: "{version}", inventory: [{name}], push: simple, reset: bmc, order: 1,
     artifact: {{url: firmware/bmc.bin, sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad}}}}
"""
NODE = "{{node_spec: small, profile: managed, site: lab, rack: r{rack}, u: {unit}, serial_number: S{name}}}"
FIRST = {"bmc": "1", "bios": "1"}
RACK = 5


@dataclass
class RollingRepository:
    """The repository at `root`. `versions` are those of each commit."""

    root: Path
    nodes: int

    def __post_init__(self) -> None:
        self._git, self.versions = SignedFleet(self.root, self.root), dict[str, dict[str, str]]()

    def lay_out(self) -> None:
        shutil.copytree(SMALLEST, self.root, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        self._git.write(".gitignore", "*\n!*/\n!/specs/**\n!/suites/**\n!/inventory/**\n!/firmware/**\n")
        self._git.write("specs/policy.yaml", POLICY)
        self._git.write("specs/checks.yaml", CHECKS)
        self._git.write("suites/test_heat.py", SUITE)
        self._git.write("specs/faults.yaml", self._git.text("specs/faults.yaml") + DRIFT.lstrip("\n"))
        allowed = "[cordon, uncordon, drain-now, zap, ticket]"
        self._git.write("specs/profile.yaml", self._git.text("specs/profile.yaml").replace("[reboot]", allowed))
        self._git.write("inventory/pool.yml", "".join(self._pool(pool) for pool in range(2)))
        self._git.git("init", "--quiet", "--initial-branch=main")
        self.merge(FIRST)

    def _pool(self, pool: int) -> str:
        places = [(name, *divmod(number, RACK)) for number, name in enumerate(self.names()) if number % 2 == pool]
        nodes = "".join(
            f"    {name}: {NODE.format(name=name, rack=rack, unit=unit + 1)}\n" for name, rack, unit in places
        )
        return f"pool-{pool}:\n  hosts:\n{nodes}"

    def names(self) -> list[str]:
        return [f"n{number:04}" for number in range(self.nodes)]

    @property
    def head(self) -> str:
        return list(self.versions)[-1]

    def merge(self, versions: dict[str, str]) -> None:
        """Merge these versions."""
        lines = "".join(COMPONENT.format(name=name, version=one).lstrip("\n") for name, one in versions.items())
        self._git.write("specs/bundle.yaml", f"kind: FirmwareBundle\nname: bundle\ncomponents:\n{lines}")
        self.versions[self._git.commit()] = versions

    def revert(self) -> None:
        """Merge the revert of the newest commit."""
        versions = self.versions[list(self.versions)[-2]]
        self._git.git("revert", "--no-edit", "HEAD")
        self.versions[self._git.git("rev-parse", "HEAD").strip()] = versions
