"""Caches compiled topologies between runs, under a key over the content of every file that a topology depends on.

So a topology is never stale, whether the tree is committed or not. A cached file begins with the digest of its rest:
one that is cut or damaged is compiled again, like one that is missing. The format is Python's marshal, which is read
five times as fast as JSON. It holds plain data only, and depends on the version of Python, which is part of the key.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import assay
from assay.fabric.topology.compiled_topology import CableRun, CableTable, CompiledTopology, DesignedDevice
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import PortId, PortLabelling
from assay.model.gc_pause import pause_gc

if TYPE_CHECKING:  # a cache hit needs none of these, nor pydantic
    from assay.model.fabric.fabric_design import FabricDesign
    from assay.model.fleet import Fleet

MAGIC = b"assay fabric plan\n"
MAX_CACHED_TOPOLOGIES = 24  # a topology of 2,048 nodes takes 3 MB
SOURCES = (".yaml", ".yml", ".csv", ".json", "")
COMPILER_ROOMS = ("model", "fleet", "fabric")
"""The packages of assay that a compiled topology can depend on."""


def load_topology(
    root: Path, name: str = "", overlays: Sequence[Path] = (), file: Path | None = None
) -> CompiledTopology:
    """Return the compiled topology of the design `name` in the repository at `root`, or of the design in `file`.

    Without a name, the repository must have exactly one design. Raises AssayError as `load_fleet` and
    `compile_topology` do.
    """
    path = root / ".assay" / "cache" / "fabric" / f"{_cache_key(root, name, overlays, file)}.plan"
    with pause_gc():
        topology = _read_cached(path)
        if topology is None:
            from assay.fabric.topology.design_compiler import compile_topology

            topology = compile_topology(*_declared(root, name, overlays, file))
            if (root / "inventory").is_dir():  # only a fleet repository gets a cache folder
                _write_cached(path, topology)
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


def _declared(root: Path, name: str, overlays: Sequence[Path], file: Path | None) -> tuple[FabricDesign, Fleet]:
    from assay.fleet.fleet_loader import load_fleet
    from assay.fleet.spec_reader import read_design
    from assay.model.fleet import Fleet

    if file is None:
        fleet = load_fleet(root, overlays)
        return select_design(fleet, name), fleet
    design = read_design(file, root)
    return design, load_fleet(root, overlays) if (root / "inventory").is_dir() else Fleet(root, {})


def _cache_key(root: Path, name: str, overlays: Sequence[Path], file: Path | None) -> str:
    """Return a digest of everything that the topology depends on."""
    digest = hashlib.sha256(f"{_compiler()}\0{name}\0".encode())
    for source in (root / "inventory", root / "specs", *overlays, *([file] if file else [])):
        for path in _files(source):
            digest.update(f"{path.relative_to(root) if path.is_relative_to(root) else path}\0".encode(errors="replace"))
            with contextlib.suppress(OSError):
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def _files(source: Path) -> Iterable[Path]:
    """Return the files at `source` that may declare something, in a stable order."""
    if not source.is_dir():
        return [source] if source.is_file() else []
    from assay.fleet.repository_tree import WorkingFolder

    found = WorkingFolder(source).files("")
    return [source / path for path in found if os.path.splitext(path)[1] in SOURCES]  # noqa: PTH122


@cache
def _compiler() -> str:
    """Return a digest of this program, as far as a topology depends on it."""
    digest = hashlib.sha256(f"{sys.version} {marshal.version} {sys.byteorder}".encode())
    here = Path(assay.__file__).parent
    for path in sorted(path for room in COMPILER_ROOMS for path in (here / room).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_cached(path: Path) -> CompiledTopology | None:
    """Return a cached topology, None if the file is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = memoryview(content)[len(MAGIC) + 32 :]
    if not content.startswith(MAGIC) or content[len(MAGIC) : len(MAGIC) + 32] != hashlib.sha256(payload).digest():
        return None
    return _deserialize(marshal.loads(payload))  # noqa: S302 — the digest proves it is what was written: plain data


def _write_cached(path: Path, topology: CompiledTopology) -> None:
    """Write a topology to the cache. If that fails, the next run compiles again. Other writers write the same file."""
    payload = marshal.dumps(_serialize(topology))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        Path(stream.name).replace(path)
        _prune(path.parent)


def _prune(folder: Path) -> None:
    """Remove all but the newest cached topologies."""
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[MAX_CACHED_TOPOLOGIES:]:
        path.unlink(missing_ok=True)


def _serialize(topology: CompiledTopology) -> Any:
    devices = [(*device[:9], device.labels and tuple(device.labels), device.hca_label) for device in topology]
    links = topology.links
    columns = [column.tobytes() for column in (links.a, links.a_port, links.b, links.b_port)]
    runs, spare = [tuple(run) for run in links.runs], [tuple(port) for port in topology.spare]
    rows = {digits: list(rows) for digits, rows in topology.rows.items()}
    return topology.name, devices, columns, runs, rows, spare


def _deserialize(plain: Any) -> CompiledTopology:
    name, plain_devices, columns, runs, rows, spare = plain
    links = CableTable()
    for column, content in zip((links.a, links.a_port, links.b, links.b_port), columns, strict=True):
        column.frombytes(content)
    links.runs = [CableRun(*run) for run in runs]
    labels = {plain: PortLabelling(*plain) for plain in {device[9] for device in plain_devices} if plain}
    devices = [DesignedDevice._make((*device[:9], labels.get(device[9]), device[10])) for device in plain_devices]
    return CompiledTopology(name, devices, links, rows, [PortId(*port) for port in spare])
