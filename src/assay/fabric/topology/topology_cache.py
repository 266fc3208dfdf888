"""Compiled designs, kept between runs: what was compiled from the same files by the same code is not compiled again.

The key is of the content of every file that a plan can depend on, so that a plan is never stale, dirty tree or not.
A kept file begins with the digest of the rest: one that was cut, or garbled, is compiled anew, like one that is not
there. Format: Python's marshal, which is read five times as fast as JSON and shares what is the same; it holds plain
data only, and is of one version of Python, which is part of the key.
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

if TYPE_CHECKING:  # what a design is made of is not read on a hit
    from assay.model.fabric.fabric_design import FabricDesign
    from assay.model.fleet import Fleet

MAGIC = b"assay fabric plan\n"
MAX_CACHED_TOPOLOGIES = 24  # files; a plan of 2,048 nodes takes 3 MB
SOURCES = (".yaml", ".yml", ".csv", ".json", "")
COMPILER_ROOMS = ("model", "fleet", "fabric")


def load_topology(
    root: Path, name: str = "", overlays: Sequence[Path] = (), file: Path | None = None
) -> CompiledTopology:
    """Return the plan of the design `name` of the repository at `root`, or of the one in `file`.

    Without a name it is the only design that there is. Raises Trouble as `load_fleet` and `plan` do.
    """
    where = root / ".assay" / "cache" / "fabric" / f"{_cache_key(root, name, overlays, file)}.plan"
    with pause_gc():
        kept = _read_cached(where)
        if kept is None:
            from assay.fabric.topology.design_compiler import compile_topology

            kept = compile_topology(*_declared(root, name, overlays, file))
            if (root / "inventory").is_dir():  # elsewhere it would only litter
                _write_cached(where, kept)
    return kept


def select_design(fleet: Fleet, name: str) -> FabricDesign:
    """Return the design asked for; the only one where none is asked for."""
    names = sorted(fleet.designs)
    if not name and len(names) == 1:
        return fleet.designs[names[0]]
    if name in fleet.designs:
        return fleet.designs[name]
    have = f"the designs are: {', '.join(names)}" if names else "write one in specs/fabrics/"
    raise AssayError(f"there is no FabricDesign {name!r}" if name else "which FabricDesign?", fix=have)


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
    """Return what tells this content from any other."""
    digest = hashlib.sha256(f"{_compiler()}\0{name}\0".encode())
    for source in (root / "inventory", root / "specs", *overlays, *([file] if file else [])):
        for path in _files(source):
            digest.update(f"{path.relative_to(root) if path.is_relative_to(root) else path}\0".encode(errors="replace"))
            with contextlib.suppress(OSError):
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def _files(source: Path) -> Iterable[Path]:
    """Return the files at `source` that declare something, in a stable order."""
    if not source.is_dir():
        return [source] if source.is_file() else []
    from assay.fleet.repository_tree import WorkingFolder

    found = WorkingFolder(source).files("")
    return [source / path for path in found if os.path.splitext(path)[1] in SOURCES]  # noqa: PTH122


@cache
def _compiler() -> str:
    """Return a digest of this program, as far as a plan can depend on it."""
    digest = hashlib.sha256(f"{sys.version} {marshal.version} {sys.byteorder}".encode())
    here = Path(assay.__file__).parent
    for path in sorted(path for room in COMPILER_ROOMS for path in (here / room).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_cached(path: Path) -> CompiledTopology | None:
    """Return a kept plan; None where there is none that is whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = memoryview(content)[len(MAGIC) + 32 :]
    if not content.startswith(MAGIC) or content[len(MAGIC) : len(MAGIC) + 32] != hashlib.sha256(payload).digest():
        return None
    return _deserialize(marshal.loads(payload))  # noqa: S302 — whole as written; plain data


def _write_cached(path: Path, plan: CompiledTopology) -> None:
    """Keep a plan; where that cannot be, the next run compiles it again. Another writer's file is the same."""
    payload = marshal.dumps(_serialize(plan))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        Path(stream.name).replace(path)
        _prune(path.parent)


def _prune(folder: Path) -> None:
    """Leave the newest plans only."""
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[MAX_CACHED_TOPOLOGIES:]:
        path.unlink(missing_ok=True)


def _serialize(plan: CompiledTopology) -> Any:
    devices = [(*device[:9], device.labels and tuple(device.labels), device.hca_label) for device in plan]
    links = plan.links
    ends = [of.tobytes() for of in (links.a, links.a_port, links.b, links.b_port)]
    rows = {digits: list(rows) for digits, rows in plan.rows.items()}
    return plan.name, devices, ends, [tuple(run) for run in links.runs], rows, [tuple(port) for port in plan.spare]


def _deserialize(plain: Any) -> CompiledTopology:
    name, devices, ends, runs, rows, spare = plain
    links = CableTable()
    for of, content in zip((links.a, links.a_port, links.b, links.b_port), ends, strict=True):
        of.frombytes(content)
    links.runs = [CableRun(*run) for run in runs]
    labels = {one: PortLabelling(*one) for one in {device[9] for device in devices} if one}
    made = [DesignedDevice._make((*one[:9], labels.get(one[9]), one[10])) for one in devices]
    return CompiledTopology(name, made, links, rows, [PortId(*port) for port in spare])
