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
from assay.fabric.many import many_objects
from assay.fabric.planned import Device, Links, Plan, Run
from assay.model.cable import Port
from assay.model.errors import Trouble
from assay.model.labels import Labels

if TYPE_CHECKING:  # what a design is made of is not read on a hit
    from assay.model.design import FabricDesign
    from assay.model.fleet import Fleet

MAGIC = b"assay fabric plan\n"
KEPT = 24  # files; a plan of 2,048 nodes takes 3 MB
SOURCES = (".yaml", ".yml", ".csv", ".json", "")
COMPILER = ("model", "fleet", "fabric")


def compiled(root: Path, name: str = "", overlays: Sequence[Path] = (), file: Path | None = None) -> Plan:
    """Return the plan of the design `name` of the repository at `root`, or of the one in `file`.

    Without a name it is the only design that there is. Raises Trouble as `load_fleet` and `plan` do.
    """
    where = root / ".assay" / "cache" / "fabric" / f"{_key(root, name, overlays, file)}.plan"
    with many_objects():
        kept = _read(where)
        if kept is None:
            from assay.fabric.design import plan

            kept = plan(*_declared(root, name, overlays, file))
            if (root / "inventory").is_dir():  # elsewhere it would only litter
                _keep(where, kept)
    return kept


def chosen(fleet: Fleet, name: str) -> FabricDesign:
    """Return the design asked for; the only one where none is asked for."""
    names = sorted(fleet.designs)
    if not name and len(names) == 1:
        return fleet.designs[names[0]]
    if name in fleet.designs:
        return fleet.designs[name]
    have = f"the designs are: {', '.join(names)}" if names else "write one in specs/fabrics/"
    raise Trouble(f"there is no FabricDesign {name!r}" if name else "which FabricDesign?", fix=have)


def _declared(root: Path, name: str, overlays: Sequence[Path], file: Path | None) -> tuple[FabricDesign, Fleet]:
    from assay.fleet.load import load_fleet
    from assay.fleet.specs import read_design
    from assay.model.fleet import Fleet

    if file is None:
        fleet = load_fleet(root, overlays)
        return chosen(fleet, name), fleet
    design = read_design(file, root)
    return design, load_fleet(root, overlays) if (root / "inventory").is_dir() else Fleet(root, {})


def _key(root: Path, name: str, overlays: Sequence[Path], file: Path | None) -> str:
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
    from assay.fleet.tree import Folder

    found = Folder(source).files("")
    return [source / path for path in found if os.path.splitext(path)[1] in SOURCES]  # noqa: PTH122


@cache
def _compiler() -> str:
    """Return a digest of this program, as far as a plan can depend on it."""
    digest = hashlib.sha256(f"{sys.version} {marshal.version} {sys.byteorder}".encode())
    here = Path(assay.__file__).parent
    for path in sorted(path for room in COMPILER for path in (here / room).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> Plan | None:
    """Return a kept plan; None where there is none that is whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = memoryview(content)[len(MAGIC) + 32 :]
    if not content.startswith(MAGIC) or content[len(MAGIC) : len(MAGIC) + 32] != hashlib.sha256(payload).digest():
        return None
    return _thawed(marshal.loads(payload))  # noqa: S302 — whole as written; plain data


def _keep(path: Path, plan: Plan) -> None:
    """Keep a plan; where that cannot be, the next run compiles it again. Another writer's file is the same."""
    payload = marshal.dumps(_frozen(plan))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            stream.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        Path(stream.name).replace(path)
        _tidy(path.parent)


def _tidy(folder: Path) -> None:
    """Leave the newest plans only."""
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[KEPT:]:
        path.unlink(missing_ok=True)


def _frozen(plan: Plan) -> Any:
    devices = [(*device[:9], device.labels and tuple(device.labels), device.hca_label) for device in plan]
    links = plan.links
    ends = [of.tobytes() for of in (links.a, links.a_port, links.b, links.b_port)]
    rows = {digits: list(rows) for digits, rows in plan.rows.items()}
    return plan.name, devices, ends, [tuple(run) for run in links.runs], rows, [tuple(port) for port in plan.spare]


def _thawed(plain: Any) -> Plan:
    name, devices, ends, runs, rows, spare = plain
    links = Links()
    for of, content in zip((links.a, links.a_port, links.b, links.b_port), ends, strict=True):
        of.frombytes(content)
    links.runs = [Run(*run) for run in runs]
    labels = {one: Labels(*one) for one in {device[9] for device in devices} if one}
    made = [Device._make((*one[:9], labels.get(one[9]), one[10])) for one in devices]
    return Plan(name, made, links, rows, [Port(*port) for port in spare])
