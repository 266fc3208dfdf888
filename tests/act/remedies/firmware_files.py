"""Builds firmware files by the public specifications of their layouts, as vendors' tools write them."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import uuid
import zipfile
from collections.abc import Sequence

PLDM_UUIDS = (
    "f018878c-cb7d-4943-9800-a02f059aca02",
    "1244d264-8d7d-4718-a030-fc8a56587d5a",
    "3119ce2f-e80a-4a99-af6d-46f8b121f6bf",
    "7b291c99-6db6-4208-801b-02026e463c78",
)
FMP = uuid.UUID("6dcbd5ed-e82d-4c44-bda1-7194199ad92a")
GUID = uuid.UUID("11223344-5566-7788-99aa-bbccddeeff00")


def make_pldm(
    versions: Sequence[str], descriptors: Sequence[tuple[int, bytes]], revision: int = 0, package: str = "pkg-1"
) -> bytes:
    """Return a package of DMTF DSP0267 1.0 to 1.3, with one record of a device and an image for each version."""
    bitmap = b"\xff" * ((len(versions) + 7) // 8)
    told = b"".join(struct.pack("<HH", kind, len(data)) + data for kind, data in descriptors)
    set_version = b"set-1"
    record = struct.pack("<BIBBH", len(descriptors), 1, 1, len(set_version), 2)
    if revision >= 3:
        record += struct.pack("<I", 0)
    record += bitmap + set_version + told + b"\xaa\xbb"
    records = struct.pack("<B", 1) + struct.pack("<H", len(record) + 2) + record
    if revision >= 1:
        records += struct.pack("<B", 1) + struct.pack("<H", 12) + b"\0" * 10
    images = struct.pack("<H", len(versions))
    for number, version in enumerate(versions):
        text = version.encode()
        images += struct.pack("<HHIHHIIBB", 10, number, 0, 0, 0, 0, 4, 1, len(text)) + text
        if revision >= 2:
            images += struct.pack("<I", 3) + b"own"
    name = package.encode()
    head = struct.pack("<HBB", len(bitmap) * 8, 1, len(name)) + name
    size = 16 + 1 + 2 + 13 + len(head) + len(records) + len(images) + 4
    start = uuid.UUID(PLDM_UUIDS[revision]).bytes + struct.pack("<BH13s", revision + 1, size, b"\0" * 13)
    return start + head + records + images + b"\0" * 4 + b"image"


def make_capsule(fmp: Sequence[uuid.UUID] = ()) -> bytes:
    """Return a UEFI capsule: of the GUID alone, or of firmware management with these image types."""
    if not fmp:
        return struct.pack("<16sIII", GUID.bytes_le, 28, 0x10000, 28 + 5) + b"image"
    payloads = [struct.pack("<I16sB3xIIQ", 3, one.bytes_le, 1, 5, 0, 0) + b"image" for one in fmp]
    offsets, at = [], 8 + 8 * len(fmp)
    for payload in payloads:
        offsets.append(at)
        at += len(payload)
    body = struct.pack("<IHH", 1, 0, len(fmp)) + struct.pack(f"<{len(fmp)}Q", *offsets) + b"".join(payloads)
    return struct.pack("<16sIII", FMP.bytes_le, 28, 0x10000, 28 + len(body)) + body


def make_zip(members: dict[str, bytes], before: bytes = b"") -> bytes:
    """Return a ZIP file, after a program that unpacks it (`before`)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return before + stream.getvalue()


def make_hpe(version: str) -> bytes:
    """Return a fwpkg of HPE."""
    device = {"DeviceName": "iLO", "Target": str(GUID).upper(), "Version": version, "FirmwareImages": []}
    return make_zip({"ilo.bin": b"image", "payload.json": json.dumps({"Devices": {"Device": [device]}}).encode()})


def make_dell(version: str) -> bytes:
    """Return an update package of Dell: a program with a ZIP file behind it."""
    text = (
        '<?xml version="1.0" encoding="utf-16"?><SoftwareComponent vendorVersion="' + version + '" dellVersion="A01">'
        "<Name><Display><![CDATA[an adapter]]></Display></Name><SupportedDevices><Device>"
        '<PCIInfo deviceID="101E" vendorID="15B3" subDeviceID="0041" subVendorID="15B3"/>'
        "</Device></SupportedDevices></SoftwareComponent>"
    )
    return make_zip({"package.xml": text.encode("utf-16"), "payload/fw.bin": b"image"}, before=b"MZ" + b"\0" * 4096)


def make_openbmc(version: str, *, packed: bool = True) -> bytes:
    """Return an archive of OpenBMC with its MANIFEST."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz" if packed else "w") as archive:
        manifest = f"purpose=xyz.openbmc_project.Software.Version.VersionPurpose.BMC\nversion={version}\n".encode()
        for name, content in {"image-rofs": b"image", "MANIFEST": manifest}.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return stream.getvalue()
