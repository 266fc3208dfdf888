"""Reads what a firmware file says of itself, and compares it with the bundle: version, vendor, device, GUID.

READERS has the layouts that are read. Whatever cannot be compared is said. No bytes of a file raise an error.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tarfile
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from assay.model.specs.firmware_bundle import FirmwareArtifact, FirmwareComponent

HEAD_BYTES = 1 << 20
"""Headers of PLDM packages and capsules stand within so many bytes."""
MEMBER_BYTES = 4 << 20
"""The longest list of contents that is read from an archive."""
PLDM_PACKAGES = {
    uuid.UUID("f018878c-cb7d-4943-9800-a02f059aca02"): 0,
    uuid.UUID("1244d264-8d7d-4718-a030-fc8a56587d5a"): 1,
    uuid.UUID("3119ce2f-e80a-4a99-af6d-46f8b121f6bf"): 2,
    uuid.UUID("7b291c99-6db6-4208-801b-02026e463c78"): 3,
}
"""The first 16 bytes of a package by DMTF DSP0267, in the order of the text, and what its revision adds."""
FMP_CAPSULE = uuid.UUID("6dcbd5ed-e82d-4c44-bda1-7194199ad92a")
"""UEFI Specification 2.10, 23.3: a capsule of firmware management. Any other GUID is the firmware's own."""
KNOWN_STARTS = {b"UBI#": "a UBI image", b"\xd0\x0d\xfe\xed": "a FIT image"}


@dataclass(frozen=True, slots=True)
class FileStatement:
    """What a file says: its layout, the versions that it names, and what it is for, as `fits` of an artifact."""

    layout: str
    versions: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileComparison:
    """What agrees, what differs ("" nothing), and what could not be compared."""

    agrees: tuple[str, ...]
    differs: str
    unknown: tuple[str, ...]

    def describe(self) -> str:
        """Return in a few words what was compared, and what was not."""
        parts = [f"agrees: {', '.join(self.agrees)}"] if self.agrees else []
        return "; ".join([*parts, *(f"not compared: {one}" for one in self.unknown)])


def compare_file(file: Path, component: FirmwareComponent) -> FileComparison:
    """Compare a file with its component, which has an artifact. Raises OSError for a file that cannot be read."""
    artifact = component.artifact
    assert artifact is not None
    wanted, said = artifact.version or component.version, read_statement(file)
    agrees, differs, unknown = [], [], []
    if said.versions:
        text = f"version {wanted}"
        if wanted in said.versions:
            agrees.append(text)
        else:
            differs.append(f"it names version {_list(said.versions)}, and the bundle {wanted}")
    else:
        unknown.append(f"version ({said.layout} names none)")
    _compare_fits(artifact, said, agrees, differs, unknown)
    return FileComparison(tuple(agrees), "; ".join(differs), tuple(unknown))


def _compare_fits(
    artifact: FirmwareArtifact, said: FileStatement, agrees: list[str], differs: list[str], unknown: list[str]
) -> None:
    if not said.fits:
        unknown.append(f"vendor and device ({said.layout} names none)")
    elif not artifact.fits:
        unknown.append(f"vendor and device (it is for {_list(said.fits)}, and the artifact has no `fits`)")
    elif missing := [one for one in artifact.fits if one not in said.fits]:
        differs.append(f"it is for {_list(said.fits)}, and the bundle says {_list(missing)}")
    else:
        agrees.append(f"for {_list(artifact.fits)}")


def _list(words: tuple[str, ...] | list[str], most: int = 6) -> str:
    return ", ".join(words[:most]) + (" …" if len(words) > most else "")


def read_statement(file: Path) -> FileStatement:
    """Return what a file says of itself. Raises OSError for a file that cannot be read."""
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    for reads in READERS:
        with suppress(Exception):  # cut short, damaged, or only alike: parsers of archives raise nearly everything
            if said := reads(file, head):
                return said
    return FileStatement("a layout that assay does not read")


def _read_pldm(_file: Path, head: bytes) -> FileStatement | None:
    """Read a package of DMTF DSP0267: header, records of devices, images of components."""
    revision = PLDM_PACKAGES.get(uuid.UUID(bytes=head[:16]))
    if revision is None:
        return None
    data, versions, fits = io.BytesIO(head), dict[str, None](), dict[str, None]()
    data.seek(16 + 1 + 2 + 13)  # identifier, revision, size and time of the header
    bits, _, length = _take(data, "<HBB")
    versions[_decode(data.read(length))] = None
    (records,) = _take(data, "<B")
    for _ in range(records):
        start = data.tell()
        size, descriptors, _, _, length, _ = _take(data, "<HBIBBH")
        data.read((4 if revision >= 3 else 0) + bits // 8 + length)
        fits |= dict.fromkeys(_name_devices(dict(_take_descriptors(data, descriptors))))
        data.seek(start + size)
    for _ in range(_take(data, "<B")[0] if revision >= 1 else 0):  # devices behind these: the same
        data.seek(_take(data, "<H")[0] - 2, io.SEEK_CUR)
    (images,) = _take(data, "<H")
    for _ in range(images):
        *_, length = _take(data, "<HHIHHIIBB")
        versions[_decode(data.read(length))] = None
        if revision >= 2:
            data.read(_take(data, "<I")[0])
    return FileStatement("a PLDM package", tuple(filter(None, versions)), tuple(fits))


def _take(data: io.BytesIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, data.read(struct.calcsize(form)))


def _take_descriptors(data: io.BytesIO, count: int) -> Iterator[tuple[int, bytes]]:
    for _ in range(count):
        kind, length = _take(data, "<HH")
        yield kind, data.read(length)


def _name_devices(ids: dict[int, bytes]) -> Iterator[str]:
    """Yield what descriptors name (DSP0267, table 7): 0 PCI vendor, 1 IANA, 2 UUID, 0x100 PCI device."""
    if 0 in ids:
        vendor = f"{int.from_bytes(ids[0], 'little'):04x}"
        yield vendor
        if 0x100 in ids:
            yield f"{vendor}:{int.from_bytes(ids[0x100], 'little'):04x}"
    if 1 in ids:
        yield f"iana:{int.from_bytes(ids[1], 'little')}"
    if 2 in ids:
        yield str(uuid.UUID(bytes=ids[2]))


def _read_capsule(file: Path, head: bytes) -> FileStatement | None:
    """Read the header of a UEFI capsule, and what it carries."""
    name, header, flags, size = struct.unpack_from("<16sIII", head)
    if not (28 <= header <= 4096 and header < size <= file.stat().st_size and flags & ~0x7FFFF == 0):
        return None
    guid = uuid.UUID(bytes_le=name)
    if guid != FMP_CAPSULE:
        return FileStatement("a UEFI capsule", (), (str(guid),))
    _, drivers, payloads = struct.unpack_from("<IHH", head, header)
    offsets = struct.unpack_from(f"<{payloads}Q", head, header + 8 + 8 * drivers)
    guids = [uuid.UUID(bytes_le=struct.unpack_from("<I16s", head, header + at)[1]) for at in offsets]
    return FileStatement("a UEFI capsule", (), tuple(dict.fromkeys(map(str, guids))))


def _read_zip(file: Path, _head: bytes) -> FileStatement | None:
    """Read the list of contents of HPE's fwpkg (payload.json) or of Dell's update package (package.xml)."""
    if not zipfile.is_zipfile(file):
        return None
    with zipfile.ZipFile(file) as archive:
        members = {one.filename.rpartition("/")[2].lower(): one for one in reversed(archive.infolist())}
        if listed := members.get("payload.json"):
            with archive.open(listed) as stream:
                return _read_hpe(json.loads(stream.read(MEMBER_BYTES)))
        if listed := members.get("package.xml"):
            with archive.open(listed) as stream:
                return _read_dell(stream.read(MEMBER_BYTES))
    return FileStatement("a ZIP file without a list of contents that assay reads")


def _read_hpe(listed: dict[str, Any]) -> FileStatement:
    devices = listed["Devices"]["Device"]
    versions = dict.fromkeys(str(one["Version"]) for one in devices if one.get("Version"))
    targets = dict.fromkeys(str(one["Target"]).lower() for one in devices if one.get("Target"))
    return FileStatement("a firmware package of HPE", tuple(versions), tuple(targets))


def _read_dell(listed: bytes) -> FileStatement:
    if b"<!DOCTYPE" in listed.replace(b"\0", b""):
        raise ValueError("a list of contents with declarations of its own")
    root = ElementTree.fromstring(listed)  # noqa: S314 — without a DOCTYPE there are no entities to expand
    versions = dict.fromkeys(filter(None, (root.get("vendorVersion"), root.get("dellVersion"))))
    fits = dict[str, None]()
    for one in root.iter("PCIInfo"):
        vendor, device = (str(one.get(key, "")).lower() for key in ("vendorID", "deviceID"))
        fits |= dict.fromkeys([vendor, f"{vendor}:{device}"])
    return FileStatement("an update package of Dell", tuple(versions), tuple(fits))


def _read_tar(file: Path, _head: bytes) -> FileStatement | None:
    """Read the MANIFEST of OpenBMC's archives (openbmc/docs, code-update)."""
    with tarfile.open(file) as archive:
        for _, member in zip(range(100), archive, strict=False):
            if member.name.removeprefix("./") == "MANIFEST" and (stream := archive.extractfile(member)):
                lines = stream.read(MEMBER_BYTES).decode("utf-8", "replace").splitlines()
                said = dict(line.split("=", 1) for line in lines if "=" in line)
                versions = filter(None, (said.get("version"), said.get("ExtendedVersion")))
                return FileStatement("an archive of OpenBMC", tuple(versions))
    return FileStatement("a tar archive without MANIFEST")


def _read_known_start(_file: Path, head: bytes) -> FileStatement | None:
    """Name layouts whose start is known, and which name no version that could be compared."""
    return next((FileStatement(name) for start, name in KNOWN_STARTS.items() if head.startswith(start)), None)


def _decode(text: bytes) -> str:
    return re.sub(r"[^ -~]", "", text.decode("utf-8", "replace")).strip()


READERS: tuple[Callable[[Path, bytes], FileStatement | None], ...] = (
    _read_pldm,
    _read_known_start,
    _read_zip,
    _read_tar,
    _read_capsule,
)
