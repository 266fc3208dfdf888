"""Caches compiled topologies between runs, under a key over the content of every file that a topology depends on.

So a topology is never stale, whether the tree is committed or not. A file that is cut or damaged counts as missing, and
the topology is compiled again. Cables and ports are stored as numbers, which are read faster than JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.declare.cache_file_format import (
    CacheSections,
    encode_sections,
    fingerprint_program,
    read_cache_file,
    write_cache_file,
)
from assay.declare.home import Home
from assay.fabric.design.compiled_topology import CableRun, CableTable, CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.lazy_discovery import PortRows
from assay.model.errors import AssayError
from assay.model.gc_pause import pause_gc
from assay.model.specs.fabric.cable import PortId, PortLabelling

if TYPE_CHECKING:  # a cache hit needs none of these, nor pydantic
    from assay.model.fleet import Fleet
    from assay.model.specs.fabric.fabric_design import FabricDesign

MAX_CACHED_TOPOLOGIES = 24
"""Our own choice: a topology of 2,048 nodes takes 3 MB."""
SOURCES = (".yaml", ".yml", ".csv", ".json", "")
COMPILER_ROOMS = ("model", "declare", "fabric")
"""The packages of assay that a compiled topology can depend on."""
CABLE_COLUMNS = ("a", "a_port", "b", "b_port")
LABELS_COLUMN = DesignedDevice._fields.index("labels")


def load_topology(
    root: Path, name: str = "", overlays: Sequence[Path] | None = None, file: Path | None = None
) -> CompiledTopology:
    """Return the compiled topology of the design `name` in the repository at `root`, or of the design in `file`.

    Without a name, the repository must have exactly one design. Raises AssayError as `load_fleet` and
    `compile_topology` do.
    """
    home = Home(root, "fleet" if overlays is None else "lab")
    path = home.folder / "cache" / "fabric" / f"{_cache_key(root, name, overlays, file)}.cache"
    with pause_gc():
        sections = read_cache_file(path)  # None if it is missing, damaged, or writable for others
        if sections:
            topology = _decode(sections)
        else:
            from assay.fabric.design.compiler import compile_topology

            topology = compile_topology(*_declared(root, name, overlays, file))
            if (root / "inventory").is_dir():  # only a fleet repository gets a cache folder
                write_cache_file(path, _encode(topology), MAX_CACHED_TOPOLOGIES)
    return topology


def select_design(fleet: Fleet, name: str) -> FabricDesign:
    """Return the design of a name, or the only design if the name is empty. Raises AssayError if there is none."""
    names = sorted(fleet.designs)
    if not name and len(names) == 1:
        return fleet.designs[names[0]]
    if name in fleet.designs:
        return fleet.designs[name]
    fix = f"name one of: {', '.join(names)}" if names else "write one in specs/fabrics/"
    raise AssayError(
        f"there is no FabricDesign {name!r}" if name else "the fleet does not have exactly one FabricDesign", fix=fix
    )


def _declared(root: Path, name: str, overlays: Sequence[Path] | None, file: Path | None) -> tuple[FabricDesign, Fleet]:
    from assay.declare.loader import load_fleet
    from assay.declare.spec_reader import read_spec_file
    from assay.model.fleet import Fleet
    from assay.model.specs.fabric.fabric_design import FabricDesign

    if file is None:
        fleet = load_fleet(root, overlays)
        return select_design(fleet, name), fleet
    design, _ = read_spec_file(file, root, FabricDesign)
    return design, load_fleet(root, overlays) if (root / "inventory").is_dir() else Fleet(root, {})


def _cache_key(root: Path, name: str, overlays: Sequence[Path] | None, file: Path | None) -> str:
    """Return a digest of everything that the topology depends on."""
    digest = hashlib.sha256(f"{fingerprint_program(COMPILER_ROOMS)}\0{name}\0".encode())
    for source in (root / "inventory", root / "specs", *(overlays or ()), *([file] if file else [])):
        for path in _files(source):
            digest.update(f"{path.relative_to(root) if path.is_relative_to(root) else path}\0".encode(errors="replace"))
            with contextlib.suppress(OSError):
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def _files(source: Path) -> Iterable[Path]:
    """Return the files at `source` that may declare something, in a stable order."""
    if not source.is_dir():
        return [source] if source.is_file() else []
    from assay.declare.repository.tree import WorkingFolder

    paths = WorkingFolder(source).files("")
    return [source / path for path in paths if os.path.splitext(path)[1] in SOURCES]  # noqa: PTH122


def _encode(topology: CompiledTopology) -> bytes:
    """Return the content of a cache file: devices as columns of JSON, cables and port rows as columns of numbers."""
    links, devices = topology.links, list(topology)
    columns = [list(column) for column in zip(*devices, strict=True)]
    place_of = {device.guid[2:]: place for place, device in enumerate(devices)}
    flat = [
        (place_of[peer], int(here), int(there), rate)
        for rows in topology.rows.values()
        for here, peer, there, rate in rows
    ]
    rates = {rate: place for place, rate in enumerate(sorted({row[3] for row in flat}))}
    about = {
        "name": topology.name,
        "devices": columns,
        "runs": links.runs,
        "spare": list(topology.spare),
        "row_devices": list(topology.rows),
        "first_adapters": [place_of[device.guid[2:]] for device in topology.first_adapters],
        "rates": list(rates),
    }
    numbers = {
        **{name: getattr(links, name) for name in CABLE_COLUMNS},
        "row_counts": array("I", map(len, topology.rows.values())),
        "row_peers": array("I", [row[0] for row in flat]),
        "row_ports": array("I", [row[1] for row in flat]),
        "row_peer_ports": array("I", [row[2] for row in flat]),
        "row_rates": array("I", [rates[row[3]] for row in flat]),
    }
    return encode_sections(
        {"about": json.dumps(about).encode(), **{name: column.tobytes() for name, column in numbers.items()}}
    )


def _decode(sections: CacheSections) -> CompiledTopology:
    about, links = sections.json("about"), CableTable()
    for name in CABLE_COLUMNS:
        getattr(links, name).extend(sections.numbers(name))
    links.runs = [CableRun(*run) for run in about["runs"]]
    columns = about["devices"]
    labels = [labelling and tuple(labelling) for labelling in columns[LABELS_COLUMN]]
    shared = {labelling: PortLabelling(*labelling) for labelling in set(labels) if labelling}
    columns[LABELS_COLUMN] = map(shared.get, labels)
    devices = list(map(DesignedDevice._make, zip(*columns, strict=True)))
    return CompiledTopology(
        about["name"],
        devices,
        links,
        _decode_rows(sections, about, devices),
        [PortId(*port) for port in about["spare"]],
        about["first_adapters"],
    )


def _decode_rows(sections: CacheSections, about: Any, devices: Sequence[DesignedDevice]) -> PortRows:
    """Return the port rows of each device. Equal texts are one object, as compiling makes them."""
    digits = [device.guid[2:] for device in devices]
    ports, peer_ports = sections.numbers("row_ports"), sections.numbers("row_peer_ports")
    numbers = [str(port) for port in range(max((0, *ports, *peer_ports)) + 1)]
    rows = list(
        zip(
            map(numbers.__getitem__, ports),
            map(digits.__getitem__, sections.numbers("row_peers")),
            map(numbers.__getitem__, peer_ports),
            map(about["rates"].__getitem__, sections.numbers("row_rates")),
            strict=True,
        )
    )
    ends = list(accumulate(sections.numbers("row_counts")))
    starts = [0, *ends]
    return {name: rows[start:end] for name, start, end in zip(about["row_devices"], starts, ends, strict=False)}
