"""A kept plan gives the answer that compiling gives; what is stale, cut or garbled is compiled anew."""

import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import assay
from assay.declare.loader import load_fleet
from assay.fabric.design import topology_cache as keeping
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.topology_cache import load_topology
from assay.model.errors import AssayError
from tests.support.places import ROOT

DESIGN = "specs/fabrics/compute.yaml"


@pytest.fixture
def repository(tmp_path) -> Path:
    for folder in ("inventory", "specs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


@pytest.fixture
def not_compiled(monkeypatch):
    """Let compiling fail, so that an answer can only be a kept one."""

    def refuse(*_):
        raise AssertionError("compiled anew")

    def stop():
        monkeypatch.setattr(keeping, "_declared", refuse)

    return stop


def kept(root: Path) -> list[Path]:
    return sorted((root / ".assay/cache/fabric").iterdir())


def said(one):
    return one.name, list(one), list(one.cables), one.rows, one.spare, [one.end(port) for port in one.cable_numbers]


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new, 1))


def test_a_kept_plan_says_what_compiling_says(repository, not_compiled):
    edit(repository, DESIGN, "lengths:", "spares: [{device: leaf-su01-r0, ports: 25..32}]\nlengths:")
    fleet = load_fleet(repository)
    fresh = said(compile_topology(fleet.designs["compute"], fleet))
    first = load_topology(repository, "compute")
    not_compiled()
    assert said(first) == said(load_topology(repository, "compute")) == fresh


def test_a_plan_is_kept_under_the_name_that_was_asked_for(repository):
    assert load_topology(repository).name == load_topology(repository, "compute").name == "compute"
    assert len(kept(repository)) == 2


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (DESIGN, "rack: r06, u: 30", "rack: r16, u: 30"),
        (DESIGN, "node_leaf: 10", "node_leaf: 11"),
        ("inventory/h100-a.yml", "rack: r01", "rack: r11"),
        ("specs/nodes/hgx-h100.yaml", "name: mlx5_0", "name: mlx5_9"),
    ],
)
def test_what_a_plan_depends_on_is_never_stale(repository, file, old, new):
    before = said(load_topology(repository, "compute"))
    edit(repository, file, old, new)
    fleet = load_fleet(repository)
    after = said(load_topology(repository, "compute"))
    assert before != after
    assert after == said(compile_topology(fleet.designs["compute"], fleet))


def test_an_overlay_counts_as_well(repository):
    before = load_topology(repository, "compute")
    overlay = repository / "overlay.yml"
    overlay.write_text("all: {hosts: {n0001: {rack: r77}}}\n")
    assert before.cables_of_node("n0001")[0].a.rack != "r77"
    assert load_topology(repository, "compute", [overlay]).cables_of_node("n0001")[0].a.rack == "r77"


@pytest.mark.parametrize("place", [0, 8, 30, 60, -100, -1])
def test_a_garbled_file_is_compiled_anew(repository, place):
    fresh = said(load_topology(repository, "compute"))
    (file,) = kept(repository)
    content = bytearray(file.read_bytes())
    content[place] ^= 0x55
    file.write_bytes(content)
    assert said(load_topology(repository, "compute")) == fresh
    assert file.read_bytes() != bytes(content)


@pytest.mark.parametrize("length", [0, 5, 40, 10_000])
def test_a_cut_file_is_compiled_anew(repository, length):
    fresh = said(load_topology(repository, "compute"))
    (file,) = kept(repository)
    file.write_bytes(file.read_bytes()[:length])
    assert said(load_topology(repository, "compute")) == fresh


def test_another_program_compiles_anew(repository, monkeypatch):
    load_topology(repository, "compute")
    monkeypatch.setattr(keeping, "fingerprint_program", lambda _: "another")
    load_topology(repository, "compute")
    assert len(kept(repository)) == 2


@pytest.mark.parametrize(
    "module",
    [
        "fabric/design/compiler.py",
        "fabric/lazy_discovery.py",
        "model/specs/fabric/fat_tree_geometry.py",
        "declare/spec_reader.py",
    ],
)
def test_a_changed_module_of_the_compiler_changes_the_cache_key(repository, monkeypatch, tmp_path_factory, module):
    source = tmp_path_factory.mktemp("source")
    for room in keeping.COMPILER_ROOMS:
        shutil.copytree(Path(assay.__file__).parent / room, source / room, ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(assay, "__file__", str(source / "__init__.py"))
    keys = []
    for text in ("", "# changed\n"):
        (source / module).write_text((source / module).read_text() + text)
        keeping.fingerprint_program.cache_clear()
        keys.append(keeping._cache_key(repository, "compute", (), None))
    keeping.fingerprint_program.cache_clear()
    assert keys[0] != keys[1]


def test_the_compiler_imports_nothing_that_the_cache_key_leaves_out():
    code = (
        "import sys, assay.declare.loader, assay.fabric.design.compiler;"
        "import assay.fabric.design.compiler;"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('assay.')})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == set(keeping.COMPILER_ROOMS)


def test_a_file_in_the_way_of_the_folder_costs_only_time(repository):
    (repository / ".assay").write_text("in the way")
    assert said(load_topology(repository, "compute")) == said(load_topology(repository, "compute"))


def test_several_writers_leave_one_whole_file(repository):
    with ProcessPoolExecutor(3) as pool:
        cables = list(pool.map(_cables, [repository] * 6))
    assert cables == [416] * 6
    (file,) = kept(repository)
    assert keeping.read_cache_file(file) is not None


def _cables(root: Path) -> int:
    return len(load_topology(root, "compute").cables)


def test_old_plans_make_room(repository, monkeypatch):
    monkeypatch.setattr(keeping, "MAX_CACHED_TOPOLOGIES", 3)
    for metres in range(5):
        edit(repository, DESIGN, f"node_leaf: {10 + metres}", f"node_leaf: {11 + metres}")
        load_topology(repository, "compute")
    assert len(kept(repository)) == 3


def test_what_cannot_be_compiled_is_said_and_not_kept(repository):
    edit(repository, DESIGN, "n0001..n0020", "n0001..n0021")
    for _ in range(2):
        with pytest.raises(AssayError, match="n0021"):
            load_topology(repository, "compute")
    with pytest.raises(AssayError, match="there is no FabricDesign 'storage'"):
        load_topology(repository, "storage")
    assert not (repository / ".assay").exists()


def test_a_design_may_stand_in_a_file_of_its_own(repository, tmp_path_factory):
    file = tmp_path_factory.mktemp("elsewhere") / "lab.yaml"
    cable = "0x0000000000000001/1 - 0x0000000000000002/1"
    file.write_text(f'{{kind: FabricDesign, name: lab, rate: 4xNDR, cables: ["{cable}"]}}\n')
    assert load_topology(repository, file=file).name == "lab"
    assert len(load_topology(file.parent, file=file).cables) == 1
    assert not (file.parent / ".assay").exists()  # no fleet repository: nothing is left behind
    file.write_text("kind: NodeSpec\n")
    with pytest.raises(AssayError, match="is missing"):
        load_topology(repository, file=file)
