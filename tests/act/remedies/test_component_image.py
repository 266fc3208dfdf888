"""Which file is pushed: in the lab one that it makes, on a real node only the vendor's, by digest, size and content."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.act.remedies.firmware_file import find_image
from assay.declare.home import find_home
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.firmware_bundle import FirmwareBundle, make_image, read_image_header
from tests.act.remedies.firmware_files import make_pldm

IMAGE = make_pldm(["2"], [(0, b"\xde\x10")])
SHA256 = hashlib.sha256(IMAGE).hexdigest()
PART = {"name": "bios", "version": "2", "inventory": ["BIOS"], "push": "simple", "reset": "host", "order": 1}
FILE = {"url": "firmware/bios.fwpkg", "sha256": SHA256, "size": len(IMAGE), "file": "X_bios 2.fwpkg"}


def bundle(artifact: dict[str, Any] | None, **more: Any) -> FirmwareBundle:
    part = PART if artifact is None else {**PART, "artifact": artifact}
    return FirmwareBundle.model_validate({"kind": "FirmwareBundle", "name": "b", "components": [part], **more})


def push(root: Path, one: FirmwareBundle, **fleet: Any) -> tuple[Path, str]:
    return find_image(Fleet(root, {}, bundles={"b": one}, **fleet), one, one.components[0])


def test_a_file_of_the_repository_is_pushed_if_it_is_what_the_bundle_says(tmp_path: Path) -> None:
    (tmp_path / "firmware").mkdir()
    (tmp_path / "firmware/bios.fwpkg").write_bytes(IMAGE)
    file, compared = push(tmp_path, bundle(FILE))
    assert file.read_bytes() == IMAGE
    assert compared.startswith("agrees: version 2; not compared: vendor and device, since the artifact has no `fits`")


@pytest.mark.parametrize(
    ("artifact", "says"),
    [
        (None, "bios has no artifact, so there is nothing to push"),
        ({**FILE, "sha256": "0" * 64}, f"its sha256 is {SHA256}, not 0000"),
        ({**FILE, "size": 7}, f"it has {len(IMAGE)} bytes, not 7"),
        ({**FILE, "url": "firmware/other"}, "there is no file firmware/other in the repository"),
        ({**FILE, "url": "../bios.fwpkg"}, "there is no file"),
        ({**FILE, "version": "3"}, "is not what the bundle declares: its version is pkg-1, 2, and the bundle says 3"),
        (
            {**FILE, "fits": ["15b3"]},
            "its vendor and device is 10de, and the bundle says 15b3",
        ),
    ],
)
def test_any_other_file_is_refused(artifact: dict[str, Any] | None, says: str, tmp_path: Path) -> None:
    root = tmp_path / "fleet"
    (root / "firmware").mkdir(parents=True)
    (root / "firmware/bios.fwpkg").write_bytes(IMAGE)
    (tmp_path / "bios.fwpkg").write_bytes(IMAGE)
    lines = {("FirmwareBundle/b", "components.0"): "specs/b.yaml:5"}
    with pytest.raises(AssayError) as caught:
        push(root, bundle(artifact), lines=lines)
    assert says in caught.value.what
    assert caught.value.where == "specs/b.yaml:5"
    assert caught.value.fix


def test_a_bundle_that_stands_in_is_pushed_to_no_real_node_even_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "firmware").mkdir()
    (tmp_path / "firmware/bios.fwpkg").write_bytes(IMAGE)
    with pytest.raises(AssayError, match="a push of bios is refused on a real machine"):
        push(tmp_path, bundle(FILE, stands_in="write your own"))


def test_a_file_is_fetched_once_and_keeps_its_vendors_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(url: str, _: object, start: int) -> list[bytes]:
        assert not start
        asked.append(url)
        return [IMAGE]

    monkeypatch.setattr("assay.act.boot.image_store._read_source", read)
    one = bundle({**FILE, "url": "https://vendor.site/a/b?x=1"})
    for _ in range(2):
        file, _ = push(tmp_path, one)
        assert (file.name, file.read_bytes()) == ("X_bios 2.fwpkg", IMAGE)
        assert file.is_relative_to(find_home(tmp_path).folder)
    assert asked == ["https://vendor.site/a/b?x=1"]
    with pytest.raises(AssayError, match="its digest is"):
        push(tmp_path, bundle({**FILE, "url": "https://vendor.site/x", "sha256": "1" * 64}))


@pytest.mark.parametrize("artifact", [None, {**FILE, "url": "https://vendor.site/never-asked"}])
def test_the_lab_makes_its_own_image_in_its_own_home_whatever_the_bundle_has(
    artifact: dict[str, Any] | None, tmp_path: Path
) -> None:
    one = replace_version(bundle(artifact, stands_in="x"), "../2")
    file, compared = push(tmp_path, one, is_lab=True)
    assert file.parent == find_home(tmp_path).world / "firmware"
    assert read_image_header(file.read_bytes()) == {"component": "bios", "version": "../2", "inventory": ["BIOS"]}
    assert compared == "an image of the lab"
    planted = make_image("bios", "9", ["BIOS"])
    file.write_bytes(planted)
    assert push(tmp_path, one, is_lab=True)[0].read_bytes() == planted, "what somebody planted stays"


def replace_version(one: FirmwareBundle, version: str) -> FirmwareBundle:
    part = one.components[0].model_copy(update={"version": version})
    return one.model_copy(update={"components": [part]})


def test_a_fleet_that_becomes_real_refuses_what_the_lab_did(tmp_path: Path) -> None:
    one = bundle(None, stands_in="x")
    fleet = Fleet(tmp_path, {}, is_lab=True)
    assert find_image(fleet, one, one.components[0])[0].exists()
    with pytest.raises(AssayError):
        find_image(replace(fleet, is_lab=False), one, one.components[0])
