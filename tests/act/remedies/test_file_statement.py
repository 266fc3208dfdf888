"""What firmware files say of themselves, and what a comparison with the bundle makes of it."""

from __future__ import annotations

import hashlib
import random
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.remedies.firmware_file import FileStatement, compare_file, read_statement
from assay.model.specs.firmware_bundle import FirmwareArtifact
from tests.act.remedies.firmware_files import (
    GUID,
    make_capsule,
    make_dell,
    make_hpe,
    make_openbmc,
    make_pldm,
    make_zip,
)

PCI = [(0, b"\xde\x10"), (0x100, b"\x30\x23"), (1, b"\x47\x16\0\0"), (2, GUID.bytes)]
OTHER = uuid.UUID("99999999-5566-7788-99aa-bbccddeeff00")


def said(content: bytes) -> FileStatement:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return read_statement(Path(file.name))


@pytest.mark.parametrize("revision", range(4))
def test_a_pldm_package_names_its_versions_vendor_device_number_and_guid(revision: int) -> None:
    found = said(make_pldm(["96.00.BC.00.01", "2.0"], PCI, revision))
    assert found.layout == "a PLDM package"
    assert found.versions == ("pkg-1", "96.00.BC.00.01", "2.0")
    assert found.fits == ("10de", "10de:2330", "iana:5703", str(GUID))


def test_a_capsule_names_its_guid_or_those_of_the_images_in_it() -> None:
    assert said(make_capsule()).fits == (str(GUID),)
    assert said(make_capsule([GUID, OTHER])).fits == (str(GUID), str(OTHER))


def test_packages_of_large_vendors_name_their_version_and_device() -> None:
    assert said(make_hpe("2.91")) == FileStatement("HPE's package", ("2.91",), (str(GUID),))
    assert said(make_dell("28.43")) == FileStatement("Dell's package", ("28.43", "A01"), ("15b3", "15b3:101e"))
    for packed in (True, False):
        assert said(make_openbmc("2.9.0", packed=packed)) == FileStatement("OpenBMC's archive", ("2.9.0",))


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        (b"UBI#\1" + b"\0" * 60, "a UBI image"),
        (b"\xd0\x0d\xfe\xed" + b"\0" * 60, "a FIT image"),
        (make_zip({"x": b"y"}), "a ZIP file"),
        (b"", "its layout"),
        (make_pldm(["1"], PCI)[:60], "its layout"),
        (make_zip({"package.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><a/>'}), "a ZIP file"),
        (make_zip({"payload.json": b"[]"}), "its layout"),
    ],
)
def test_what_names_nothing_is_said_to_name_nothing(content: bytes, layout: str) -> None:
    assert said(content) == FileStatement(layout)


WHOLE = {
    "pldm": make_pldm(["1", "2"], PCI, 3),
    "capsule": make_capsule([GUID]),
    "hpe": make_hpe("1"),
    "dell": make_dell("1"),
    "tar": make_openbmc("1", packed=False),
    "tar.gz": make_openbmc("1"),
}


@given(st.binary(max_size=400))
def test_no_bytes_raise_an_error(content: bytes) -> None:
    assert said(content).layout


@given(st.sampled_from(sorted(WHOLE)), st.integers(0, 2**32), st.integers(0, 12))
def test_no_damage_of_a_file_raises_an_error(name: str, seed: int, changes: int) -> None:
    dice, content = random.Random(seed), bytearray(WHOLE[name])
    for _ in range(changes):
        content[dice.randrange(len(content))] = dice.randrange(256)
    assert said(bytes(content[: dice.randrange(len(content) + 1)])).layout
    assert said(bytes(content)).layout


def compare(content: bytes, tmp_path: Path, version: str = "96.00.BC.00.01", **artifact: object) -> tuple[str, str]:
    file = tmp_path / "file"
    file.write_bytes(content)
    plain = {"url": "firmware/file", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content) or 1}
    return compare_file(file, FirmwareArtifact.model_validate({**plain, **artifact}), version)


def test_a_file_with_the_version_and_the_device_agrees(tmp_path: Path) -> None:
    differs, text = compare(make_pldm(["96.00.BC.00.01"], PCI), tmp_path, fits=["10de:2330", "iana:5703"])
    assert (differs, text) == ("", "agrees: version 96.00.BC.00.01; agrees: vendor and device 10de:2330, iana:5703")


def test_a_file_of_another_version_or_for_another_device_differs(tmp_path: Path) -> None:
    package = make_pldm(["96.00.A5.00.03"], PCI)
    assert compare(package, tmp_path)[0] == "its version is pkg-1, 96.00.A5.00.03, and the bundle says 96.00.BC.00.01"
    assert compare(package, tmp_path, version="96.00.A5.00.03")[0] == ""
    differs = compare(make_pldm(["96.00.BC.00.01"], PCI), tmp_path, fits=["10de:2901"])[0]
    assert differs == f"its vendor and device is 10de, 10de:2330, iana:5703, {GUID}, and the bundle says 10de:2901"


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    unknown = f"vendor and device, since the artifact has no `fits` for {GUID}"
    told = f"not compared: version, since a UEFI capsule names none; not compared: {unknown}"
    assert compare(make_capsule(), tmp_path) == ("", told)
    silent = [f"not compared: {what}, since a UBI image names none" for what in ("version", "vendor and device")]
    assert compare(b"UBI#", tmp_path) == ("", "; ".join(silent))
