"""A cached fleet is the one that reading gives; whatever is stale, damaged or foreign is read again."""

import shutil
from pathlib import Path

import pytest
import yaml

from assay.declare import cache_file_format, fleet_cache, loader
from assay.declare import fleet_cache as cached_nodes
from assay.declare import fleet_cache as cached_specs
from assay.declare.fleet_cache import load_cached_fleet
from assay.declare.loader import GroupedSpecs, load_fleet
from assay.model.errors import AssayError
from assay.model.fleet import FIELD_OF_KIND
from tests.support.places import ROOT


@pytest.fixture
def repository(tmp_path) -> Path:
    for folder in ("inventory", "specs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


@pytest.fixture
def cached(repository, monkeypatch) -> Path:
    """Return a repository that is cached however small it is."""
    monkeypatch.setattr(fleet_cache, "MIN_CACHED_DECLARATIONS", 2)
    return repository


def files(root: Path) -> list[Path]:
    return sorted((root / ".assay" / "cache" / "fleet").glob("*"))


def test_a_fleet_that_was_read_is_fetched_and_the_same(cached):
    read, fetched = load_cached_fleet(cached), load_cached_fleet(cached)
    assert [file.name[:5] for file in files(cached)] == ["nodes", "specs"]
    assert read == fetched == load_fleet(cached)
    assert len(fetched.lines) == len(read.lines) > 1000


def test_nodes_with_equal_settings_share_them_when_they_are_fetched(cached):
    read, fetched = load_cached_fleet(cached), load_cached_fleet(cached)
    settings = [len({id(node.settings) for node in fleet.nodes.values()}) for fleet in (read, fetched)]
    assert settings[0] == settings[1] < len(read.nodes)


def test_a_fleet_that_changed_is_read_again(cached):
    before = load_cached_fleet(cached)
    inventory = next((cached / "inventory").glob("*.y*ml"))
    inventory.write_text(inventory.read_text().replace("serial_number: ", "serial_number: X", 1))
    assert load_cached_fleet(cached) == load_fleet(cached) != before
    assert [file.name[:5] for file in files(cached)] == ["nodes", "nodes", "specs"]


def test_after_a_change_of_a_spec_only_the_specs_are_read_and_after_one_of_the_inventory_only_the_nodes(
    cached, monkeypatch
):
    load_cached_fleet(cached)
    reads = []
    for reader in ("read_nodes", "read_grouped_specs", "load_fleet"):
        read = getattr(loader, reader)
        monkeypatch.setattr(
            loader, reader, lambda *words, read=read, reader=reader: (reads.append(reader), read(*words))[1]
        )
    spec, inventory = cached / "specs" / "nodes" / "hgx-h100.yaml", next((cached / "inventory").glob("*.y*ml"))
    spec.write_text(spec.read_text().replace("description: ", "description: new, ", 1))
    first = load_cached_fleet(cached)
    inventory.write_text(inventory.read_text().replace("serial_number: ", "serial_number: X", 1))
    second = load_cached_fleet(cached)
    assert reads == ["read_grouped_specs", "read_nodes"]
    monkeypatch.undo()
    assert first.node_specs == second.node_specs
    assert first.nodes != second.nodes
    assert second == load_fleet(cached)


@pytest.mark.parametrize("part", ["specs/nodes/hgx-h100.yaml", "inventory"])
def test_a_mistake_in_the_part_that_is_read_again_is_told_as_when_all_is_read(cached, part):
    load_cached_fleet(cached)
    file = cached / part
    file = next(file.glob("*.y*ml")) if file.is_dir() else file
    file.write_text(file.read_text() + "\n? [")
    with pytest.raises(AssayError) as cached_error:
        load_cached_fleet(cached)
    with pytest.raises(AssayError) as read_error:
        load_fleet(cached)
    assert str(cached_error.value) == str(read_error.value)


def test_nodes_get_the_image_of_specs_that_changed_after_they_were_cached(cached):
    image = cached / "specs" / "images"
    before = {node.image for node in load_cached_fleet(cached).nodes.values()}
    file = next(path for path in sorted(image.rglob("*.yaml")) if "kind: Image" in path.read_text())
    file.write_text(file.read_text().replace("version: ", "version: 9", 1))
    after = load_cached_fleet(cached)
    assert {node.image for node in after.nodes.values()} != before
    assert after == load_fleet(cached)


@pytest.mark.parametrize("part", [0, 1], ids=["nodes", "specs"])
def test_a_file_that_is_cut_or_changed_or_writable_for_others_does_not_count(cached, part):
    fleet = load_cached_fleet(cached)
    file = files(cached)[part]
    whole, start = file.read_bytes(), len(cache_file_format.MAGIC)
    cut = (b"", whole[: start - 1], whole[:start], whole[:40], whole[:-1])
    changed = (bytes(start) + whole[start:], whole[:start] + bytes(32) + whole[start + 32 :], whole[:-1] + b"?")
    for content in (*cut, *changed):
        file.write_bytes(content)
        assert cache_file_format.read_cache_file(file) is None
    assert load_cached_fleet(cached) == fleet
    file.write_bytes(whole)
    assert cache_file_format.read_cache_file(file) is not None
    file.chmod(0o666)
    assert cache_file_format.read_cache_file(file) is None


def test_only_its_owner_may_read_or_write_a_file(cached):
    load_cached_fleet(cached)
    assert [file.stat().st_mode & 0o777 for file in files(cached)] == [0o600, 0o600]


def test_a_file_that_gives_other_nodes_or_specs_is_not_written(cached, monkeypatch):
    """One that JSON cannot tell: a reader would get another fleet than the one that was read."""
    fleet = load_fleet(cached)
    encoded = cached_nodes.encode_nodes(fleet.nodes.values())
    decode = cached_nodes.decode_nodes
    monkeypatch.setattr(cached_nodes, "decode_nodes", lambda sections: list(decode(sections))[1:])
    assert encoded is not None
    assert cached_nodes.encode_nodes(fleet.nodes.values()) is None
    parse = cached_specs.decode_specs
    grouped = GroupedSpecs({place: getattr(fleet, place) for place in FIELD_OF_KIND.values()}, fleet.lines)
    assert cached_specs.encode_specs(grouped) is not None
    less = {**grouped.by_field, "bundles": {}}
    monkeypatch.setattr(cached_specs, "decode_specs", lambda sections: GroupedSpecs(less, parse(sections).lines))
    assert cached_specs.encode_specs(grouped) is None
    assert load_cached_fleet(cached) == fleet
    assert files(cached) == []


def test_the_newest_files_stay(cached, monkeypatch):
    monkeypatch.setattr(fleet_cache, "MAX_CACHE_FILES", 2)
    inventory = next((cached / "inventory").glob("*.y*ml"))
    for _ in range(3):
        load_cached_fleet(cached)
        inventory.write_text(inventory.read_text() + "# once more\n")
    assert len(files(cached)) == 2


def test_a_fleet_that_cannot_be_read_is_not_cached(cached):
    (cached / "specs" / "nodes" / "gb200-nvl72.yaml").write_text("kind: NodeSpec\nname: [")
    with pytest.raises(AssayError):
        load_cached_fleet(cached)
    assert files(cached) == []


def test_a_fleet_whose_switches_are_listed_in_a_file_is_not_cached(cached):
    spec, listing = cached / "specs" / "fabrics" / "compute.yaml", cached / "switches.csv"
    design = yaml.safe_load(spec.read_text())
    rows = [f"spine-{number:02},r08,{at['u']},{at['guid']}" for number, at in enumerate(design["spines"]["at"], 1)]
    listing.write_text("\n".join(["name,rack,u,guid", *rows]))
    design["spines"]["at"] = {"file": "switches.csv"}
    spec.write_text(yaml.safe_dump(design))
    before = load_cached_fleet(cached)
    listing.write_text(listing.read_text().replace(",r08,", ",r09,"))
    assert load_cached_fleet(cached) == load_fleet(cached) != before
    assert [file.name[:5] for file in files(cached)] == ["nodes"]


def test_an_overlay_counts_as_the_fleets_own_files_do(cached, tmp_path):
    overlay = tmp_path / "overlay.yml"
    overlay.write_text("all: {hosts: {n0001: {bmc_address: 192.0.2.1}}}\n")
    fetched = [load_cached_fleet(cached, [overlay]) for _ in range(2)]
    assert fetched[0] == fetched[1] == load_fleet(cached, [overlay]) != load_cached_fleet(cached)
    overlay.write_text(overlay.read_text().replace("192.0.2.1", "192.0.2.2"))
    assert load_cached_fleet(cached, [overlay]).nodes["n0001"].bmc_address == "192.0.2.2"


def test_a_small_fleet_is_not_cached(repository, monkeypatch):
    monkeypatch.setattr(fleet_cache, "MIN_CACHED_DECLARATIONS", 1000)
    load_cached_fleet(repository)
    assert files(repository) == []
