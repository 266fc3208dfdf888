"""The lab's firmware images: always the same bytes, and what is no image is refused. The repository holds none."""

from __future__ import annotations

import pytest

from assay.declare.loader import load_fleet
from assay.model.specs.firmware_bundle import LAB_IMAGE_SIZE, make_image, read_image_header
from tests.support.places import ROOT


def test_no_bundle_of_the_example_has_an_artifact_and_each_is_marked_as_an_example() -> None:
    for bundle in load_fleet(ROOT).bundles.values():
        assert bundle.stands_in
        assert [component.artifact for component in bundle.components] == [None] * len(bundle.components)


def test_the_bundle_mixes_both_ways_to_push_and_every_kind_of_reset() -> None:
    components = load_fleet(ROOT).bundles["hgx-h100-2026-10"].components
    assert {component.push for component in components} == {"simple", "multipart"}
    assert {component.reset for component in components} == {"bmc", "host", "ac"}
    assert [component.name for component in components if component.hca] == ["hca"]
    assert len([id_ for component in components for id_ in component.inventory]) == 31


def test_an_image_is_always_the_same_bytes_of_the_same_size() -> None:
    assert make_image("bmc", "1", ["BMC"]) == make_image("bmc", "1", ["BMC"])
    assert make_image("bmc", "1", ["BMC"]) != make_image("bmc", "2", ["BMC"])
    assert len(make_image("bmc", "1", ["BMC"])) == LAB_IMAGE_SIZE
    assert read_image_header(make_image("bmc", "1", ["BMC"])) == {
        "component": "bmc",
        "version": "1",
        "inventory": ["BMC"],
    }


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"[]\n", b'{"component": "bmc"}\n'])
def test_bytes_that_are_no_image_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"image|Expecting|decode"):
        read_image_header(content)
