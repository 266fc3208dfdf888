"""The example's firmware images are what the generator makes, and what the bundles say they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from assay.fleet.fleet_loader import load_fleet
from assay.lab.firmware_images import BUNDLES, SIZE, image_path, make_image, read_image_header, write_images

ROOT = Path(__file__).parents[2]


def test_the_committed_images_are_the_generated_ones(tmp_path: Path) -> None:
    generated = {made.relative_to(tmp_path).as_posix(): made.read_bytes() for made in write_images(tmp_path)}
    committed = {f"firmware/{found.name}": found.read_bytes() for found in (ROOT / "firmware").iterdir()}
    assert generated == committed


def test_the_images_are_those_of_the_fleet_s_bundles() -> None:
    assert set(BUNDLES) == set(load_fleet(ROOT).bundles)


@pytest.mark.parametrize("bundle", BUNDLES)
def test_every_component_of_a_bundle_has_its_image_with_its_digest_version_and_inventory(bundle: str) -> None:
    components = load_fleet(ROOT).bundles[bundle].components
    assert {component.name for component in components} == set(BUNDLES[bundle])
    for component in components:
        content = (ROOT / component.artifact).read_bytes()
        assert hashlib.sha256(content).hexdigest() == component.sha256
        expected = {"component": component.name, "version": component.version, "inventory": component.inventory}
        assert read_image_header(content) == expected
        assert component.artifact == image_path(component.name, component.version)


def test_the_bundle_mixes_both_ways_to_push_and_every_kind_of_reset() -> None:
    components = load_fleet(ROOT).bundles["hgx-h100-2026-10"].components
    assert {component.push for component in components} == {"simple", "multipart"}
    assert {component.reset for component in components} == {"bmc", "host", "ac"}
    assert [component.name for component in components if component.hca] == ["hca"]
    assert len([id_ for component in components for id_ in component.inventory]) == 31


def test_an_image_is_always_the_same_bytes_of_the_same_size() -> None:
    assert make_image("bmc", "1", ["BMC"]) == make_image("bmc", "1", ["BMC"])
    assert make_image("bmc", "1", ["BMC"]) != make_image("bmc", "2", ["BMC"])
    assert len(make_image("bmc", "1", ["BMC"])) == SIZE


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"[]\n", b'{"component": "bmc"}\n'])
def test_bytes_that_are_no_image_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"image|Expecting|decode"):
        read_image_header(content)
