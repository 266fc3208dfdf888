"""The fleet that the recordings are of: what was declared when they were made, kept in `suites/recordings/fleet`.

A check is proved by a recording together with the specs, the firmware, the cables and the inventory of that time. So
another version, limit or machine in today's specs proves nothing, and disproves nothing. Checks and faults are today's;
so is a limit that there was not at that time, as a check of one's own brings it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import yaml

from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet

RECORDED_FLEET = Path("suites/recordings/fleet")
RECORDED_KINDS = ("NodeSpec", "FirmwareBundle", "FabricDesign", "Image", "ManagementProfile", "GoldenDigests")
"""What a recording depends on. The other specs say how checks are run and named: they are taken as they are today."""


def lay_recorded_fleet(fleet: Fleet, folder: Path) -> Fleet:
    """Write the fleet to judge recordings by into `folder`, which does not exist, and return it.

    Recordings without a fleet of their own are of this fleet as it is.
    """
    recorded = fleet.root / RECORDED_FLEET
    if not recorded.is_dir():
        return fleet
    shutil.copytree(recorded, folder)
    for document, path in _list_files(fleet):
        if document.partition("/")[0] not in RECORDED_KINDS:
            _copy(fleet.root / path, folder / path)
    laid = load_fleet(folder)
    return load_fleet(folder) if _add_new_limits(fleet, laid) else laid


def _add_new_limits(fleet: Fleet, laid: Fleet) -> bool:
    """Write the limits that only today's specs have into the laid ones; return whether there is any."""
    kinds = (("NodeSpec", fleet.node_specs, laid.node_specs), ("FabricDesign", fleet.designs, laid.designs))
    changed = False
    for kind, today, recorded in kinds:
        for name in today.keys() & recorded.keys():
            limits = today[name].limits
            new = {limit: limits[limit].model_dump() for limit in limits.keys() - recorded[name].limits.keys()}
            if new:
                path = laid.root / laid.lines[f"{kind}/{name}", ""].rpartition(":")[0]
                document = yaml.safe_load(path.read_text())
                path.write_text(yaml.safe_dump({**document, "limits": {**document.get("limits", {}), **new}}))
                changed = True
    return changed


def record_declarations(fleet: Fleet, name: str) -> None:
    """Keep what is declared for a recording of a node, a fabric (`fabric-NAME`) or its week (`week-NAME`)."""
    recorded = fleet.root / RECORDED_FLEET
    node = fleet.nodes.get(name)
    wanted = {f"Image/{image}" for image in fleet.images} | {f"GoldenDigests/{each}" for each in fleet.golden_digests}
    wanted |= {f"ManagementProfile/{profile}" for profile in fleet.profiles}
    specs = {node.spec} if node else {known.spec for known in fleet.nodes.values()}
    while specs:
        spec = fleet.node_specs[specs.pop()]
        wanted |= {f"NodeSpec/{spec.name}", f"FirmwareBundle/{spec.firmware}"}
        specs |= {spec.extends} if spec.extends else set()
    if node is None:
        wanted.add(f"FabricDesign/{name.partition('-')[2]}")
        shutil.rmtree(recorded / "inventory", ignore_errors=True)
        shutil.copytree(fleet.root / "inventory", recorded / "inventory")
    for document, path in _list_files(fleet):
        if document in wanted:
            _copy(fleet.root / path, recorded / path)


def _list_files(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield each spec, such as `NodeSpec/hgx-h100`, with the path of its file in the repository."""
    for (document, value), line in fleet.lines.items():
        if not value:
            yield document, line.rpartition(":")[0]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
