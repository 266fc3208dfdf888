"""A cached fleet is the one that reading gives; whatever is stale, damaged or foreign is read again."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from assay.fleet import cache_file_format, fleet_cache
from assay.fleet.fleet_cache import load_cached_fleet
from assay.fleet.fleet_loader import load_fleet
from assay.model.errors import AssayError

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path) -> Path:
    for folder in ("inventory", "specs"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
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
    assert len(files(cached)) == 1
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
    assert len(files(cached)) == 2


def test_a_file_that_is_cut_or_changed_or_writable_for_others_does_not_count(cached):
    fleet = load_cached_fleet(cached)
    (file,) = files(cached)
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
    assert [file.stat().st_mode & 0o777 for file in files(cached)] == [0o600]


def test_a_file_that_gives_another_fleet_is_not_written(cached, monkeypatch):
    fleet = load_fleet(cached)
    other = replace(fleet, nodes=dict(list(fleet.nodes.items())[1:]))
    assert fleet_cache._decodes_to(fleet_cache._encode_fleet(fleet), fleet)
    assert not fleet_cache._decodes_to(fleet_cache._encode_fleet(other), fleet)
    monkeypatch.setattr(fleet_cache, "_encode_fleet", lambda _, encode=fleet_cache._encode_fleet: encode(other))
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
    assert files(cached) == []


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
