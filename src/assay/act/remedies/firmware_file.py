"""Finds the file that is pushed for a component, and compares what it says of itself with the bundle.

It is the vendor's file, by its digest; in the lab, one that its BMCs read. READERS has the layouts that are read.
Whatever cannot be compared is said. No bytes of a file raise an error.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tarfile
import uuid
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from assay.act.boot.image_store import ImageStore, compute_digest
from assay.declare.home import find_home_of
from assay.declare.rules.firmware_bundles import is_pointer, resolve_artifact
from assay.declare.stand_ins import refuse_spec
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.firmware_bundle import FirmwareArtifact, FirmwareBundle, FirmwareComponent, make_image
from assay.model.specs.image import ImageArtifact

MOST_BYTES = 4 << 20
"""Headers, and lists of contents in archives, are not longer."""
PLDM_PACKAGES = (
    "f018878ccb7d49439800a02f059aca02",
    "1244d2648d7d4718a030fc8a56587d5a",
    "3119ce2fe80a4a99af6d46f8b121f6bf",
    "7b291c996db64208801b02026e463c78",
)
"""The first 16 bytes of a package by DMTF DSP0267, versions 1.0 to 1.3."""
FMP_CAPSULE = uuid.UUID("6dcbd5ed-e82d-4c44-bda1-7194199ad92a")
"""UEFI Specification 2.10, 23.3: a capsule of firmware management. Any other GUID is the firmware's own."""
SILENT_LAYOUTS = {b"UBI#": "a UBI image", b"\xd0\x0d\xfe\xed": "a FIT image"}


class FileStatement(NamedTuple):
    """What a file says: its layout, the versions that it names, and what it is for, as `fits` of an artifact."""

    layout: str
    versions: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()


def compare_file(file: Path, artifact: FirmwareArtifact, version: str) -> tuple[str, str]:
    """Return how a file differs from its artifact and version ("": it does not), and what was compared and what not.

    Raises OSError for a file that cannot be read.
    """
    statement, differs, notes = read_statement(file), list[str](), list[str]()
    aspects = ("version", [version], statement.versions), ("vendor and device", artifact.fits, statement.fits)
    for aspect, wanted, named in aspects:
        shown = ", ".join(named[:6]) + " …" * (len(named) > 6)
        if not named:
            notes.append(f"not compared: {aspect}, since {statement.layout} names none")
        elif not wanted:
            notes.append(f"not compared: {aspect}, since the artifact has no `fits` for {shown}")
        elif missing := [name for name in wanted if name not in named]:
            differs.append(f"its {aspect} is {shown}, and the bundle says {', '.join(missing)}")
        else:
            notes.append(f"agrees: {aspect} {', '.join(wanted)}")
    return "; ".join(differs), "; ".join(notes)


def read_statement(file: Path) -> FileStatement:
    """Return what a file says of itself. Raises OSError for a file that cannot be read."""
    with file.open("rb") as stream:
        head = stream.read(MOST_BYTES)
    for reads in READERS:
        with suppress(Exception):  # cut short, damaged, or only alike: parsers of archives raise nearly everything
            if statement := reads(file, head):
                return statement
    return FileStatement(next((name for start, name in SILENT_LAYOUTS.items() if head.startswith(start)), "its layout"))


def _read_pldm(_file: Path, head: bytes) -> FileStatement:
    """Read a package of DMTF DSP0267: header, records of devices, images of components."""
    minor, data = PLDM_PACKAGES.index(head[:16].hex()), io.BytesIO(head)
    versions, fits = list[str](), list[str]()

    def take(form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", data.read(struct.calcsize(f"<{form}")))

    data.seek(16 + 1 + 2 + 13)  # identifier, revision, size and time of the header
    bits, _, length = take("HBB")
    versions.append(_decode(data.read(length)))
    for _ in range(*take("B")):
        start = data.tell()
        size, descriptors, _, _, length, _ = take("HBIBBH")
        data.read(4 * (minor >= 3) + bits // 8 + length)
        ids = dict[int, bytes]()
        for _ in range(descriptors):
            kind, length = take("HH")
            ids[kind] = data.read(length)
        fits += _name_device(ids)
        data.seek(start + size)
    for _ in range(*take("B") if minor >= 1 else (0,)):  # devices behind these
        data.seek(take("H")[0] - 2, io.SEEK_CUR)
    for _ in range(*take("H")):
        versions.append(_decode(data.read(take("HHIHHIIBB")[-1])))
        if minor >= 2:
            data.read(*take("I"))
    return FileStatement("a PLDM package", _list(versions), _list(fits))


def _name_device(ids: dict[int, bytes]) -> list[str]:
    """Return what descriptors name (DSP0267, table 7): 0 PCI vendor, 1 IANA, 2 UUID, 0x100 PCI device."""
    numbers = {kind: int.from_bytes(ids[kind], "little") for kind in (0, 1, 0x100) if kind in ids}
    names = [f"{numbers[0]:04x}"] if 0 in numbers else []
    names += [f"{numbers[0]:04x}:{numbers[0x100]:04x}"] if {0, 0x100} <= numbers.keys() else []
    names += [f"iana:{numbers[1]}"] if 1 in numbers else []
    return [*names, *([str(uuid.UUID(bytes=ids[2]))] if 2 in ids else [])]


def _read_capsule(file: Path, head: bytes) -> FileStatement | None:
    """Read the header of a UEFI capsule, and what it carries."""
    name, header, flags, size = struct.unpack_from("<16sIII", head)
    if not (28 <= header <= 4096 and header < size <= file.stat().st_size and flags <= 0x7FFFF):
        return None
    guids = [uuid.UUID(bytes_le=name)]
    if guids == [FMP_CAPSULE]:
        _, drivers, payloads = struct.unpack_from("<IHH", head, header)
        offsets = struct.unpack_from(f"<{payloads}Q", head, header + 8 + 8 * drivers)
        guids = [uuid.UUID(bytes_le=head[header + at + 4 :][:16]) for at in offsets]
    return FileStatement("a UEFI capsule", (), _list(map(str, guids)))


def _read_zip(file: Path, _head: bytes) -> FileStatement:
    """Read the list of contents of HPE's fwpkg (payload.json) or of Dell's update package (package.xml)."""
    with zipfile.ZipFile(file) as archive:
        members = {member.filename.rpartition("/")[2].lower(): member for member in archive.infolist()}
        listing = next((name for name in ("payload.json", "package.xml") if name in members), "")
        listed = archive.open(members[listing]).read(MOST_BYTES) if listing else b""
    if listing == "payload.json":
        devices = json.loads(listed)["Devices"]["Device"]
        fits = [str(device.get("Target", "")).lower() for device in devices]
        return FileStatement("HPE's package", _list(str(device.get("Version", "")) for device in devices), _list(fits))
    if not listing or b"<!DOCTYPE" in listed.replace(b"\0", b""):
        return FileStatement("a ZIP file")
    root = ElementTree.fromstring(listed)  # noqa: S314 — without a DOCTYPE there are no entities to expand
    ids = [(element.attrib["vendorID"].lower(), element.attrib["deviceID"].lower()) for element in root.iter("PCIInfo")]
    fits = [name for vendor, device in ids for name in (vendor, f"{vendor}:{device}")]
    versions = (root.get("vendorVersion", ""), root.get("dellVersion", ""))
    return FileStatement("Dell's package", _list(versions), _list(fits))


def _read_tar(file: Path, _head: bytes) -> FileStatement:
    """Read the MANIFEST of OpenBMC's archives (openbmc/docs, code-update)."""
    with tarfile.open(file) as archive:
        for _, member in zip(range(100), archive, strict=False):
            if member.name.removeprefix("./") == "MANIFEST" and (stream := archive.extractfile(member)):
                lines = stream.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
                manifest = dict(line.split("=", 1) for line in lines if "=" in line)
                return FileStatement(
                    "OpenBMC's archive", _list((manifest.get("version", ""), manifest.get("ExtendedVersion", "")))
                )
    return FileStatement("a tar archive")


def _list(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, words)))


def _decode(text: bytes) -> str:
    return re.sub(r"[^ -~]", "", text.decode("utf-8", "replace")).strip()


READERS: tuple[Callable[[Path, bytes], FileStatement | None], ...] = (_read_pldm, _read_zip, _read_tar, _read_capsule)


FOLDER = "firmware"


def find_image(fleet: Fleet, bundle: FirmwareBundle, component: FirmwareComponent) -> tuple[Path, str]:
    """Return the file to push, and what a comparison of it with the bundle found.

    Raises AssayError for a bundle that stands in for a site's own, for a component without an artifact, and for a file
    that cannot be fetched, has another digest or size, or says that it is something else. Then nothing is pushed.
    A virtual BMC takes images of the lab only; what a real one would get from the repository is compared all the same.
    """
    path = f"components.{bundle.components.index(component)}"
    where = fleet.lines.get((f"FirmwareBundle/{bundle.name}", path), f"FirmwareBundle {bundle.name} {component.name}")
    artifact = component.artifact
    if fleet.is_lab:
        made = _make_lab_file(find_home_of(fleet).world / FOLDER, component)
        file = resolve_artifact(fleet.root, artifact.path) if artifact and artifact.path else made
        if artifact is None or not file.is_file() or file == made or is_pointer(file):
            return made, "an image of the lab"
        return made, f"an image of the lab; the file of the repository: {_compare(file, component, artifact, where)}"
    refuse_spec(fleet, bundle, f"a push of {component.name}")
    if artifact is None:
        fix = "add its `artifact`: url, sha256, size and the vendor's name of the file"
        raise AssayError(f"{component.name} has no artifact, so there is nothing to push", where=where, fix=fix)
    file = _fetch(fleet, artifact, where)
    return file, _compare(file, component, artifact, where)


def _compare(file: Path, component: FirmwareComponent, artifact: FirmwareArtifact, where: str) -> str:
    """Return what a comparison of a file with its artifact found. Raises AssayError if it is something else."""
    differs, notes = compare_file(file, artifact, artifact.version or component.version)
    if other := _describe_other_content(file, artifact) or differs:
        fix = "replace the file or correct the artifact; nothing was pushed"
        raise AssayError(f"{artifact.name} is not what the bundle declares: {other}", where=where, fix=fix)
    return notes


def _make_lab_file(folder: Path, component: FirmwareComponent) -> Path:
    """Return the lab's image of a component, written unless somebody put another one there."""
    path = folder / f"{component.name}-{component.version}.bin".replace("/", "_")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make_image(component.name, component.version, component.inventory))
    return path


def _fetch(fleet: Fleet, artifact: FirmwareArtifact, where: str) -> Path:
    """Return the artifact's file under its vendor's name: some BMCs go by it."""
    if artifact.path:
        if not (path := resolve_artifact(fleet.root, artifact.path)).is_file():
            raise AssayError(f"there is no file {artifact.path} in the repository", where=where, fix="add the image")
        return path
    folder = find_home_of(fleet).folder / FOLDER / artifact.sha256
    stored = ImageStore(folder).fetch_file(ImageArtifact(url=artifact.url, sha256=artifact.sha256), where)
    if not (named := folder / artifact.name).exists():
        named.symlink_to(stored.name)
    return named


def _describe_other_content(file: Path, artifact: FirmwareArtifact) -> str:
    """Return how size or digest of a file differ from the artifact's, "" if they do not."""
    if artifact.size not in (None, size := file.stat().st_size):
        return f"it has {size} bytes, not {artifact.size}"
    digest = compute_digest(file)
    return "" if digest == artifact.sha256 else f"its sha256 is {digest}, not {artifact.sha256}"
