"""Finds the file that is pushed for a component: the vendor's, by its digest; in the lab, one that its BMCs read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from assay.actions.firmware.file_statement import compare_file
from assay.fleet.home import find_home_of
from assay.fleet.stand_ins import refuse_spec
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.lab_firmware_image import make_image
from assay.model.provisioning.image_spec import ImageArtifact
from assay.model.specs.firmware_bundle import FirmwareArtifact, FirmwareBundle, FirmwareComponent
from assay.provisioning.image_store import ImageStore

FOLDER = "firmware"


def find_image(fleet: Fleet, bundle: FirmwareBundle, component: FirmwareComponent) -> tuple[Path, str]:
    """Return the file to push, and what a comparison of it with the bundle found.

    Raises AssayError for a bundle that stands in for a site's own, for a component without an artifact, and for a file
    that cannot be fetched, has another digest or size, or says that it is something else. Then nothing is pushed.
    """
    if fleet.is_lab:
        return _make_lab_file(find_home_of(fleet).world / FOLDER, component), "an image of the lab"
    refuse_spec(fleet, bundle, f"a push of {component.name}")
    where = _find_line(fleet, bundle, component)
    if component.artifact is None:
        fix = "add its `artifact`: url, sha256, size and the vendor's name of the file"
        raise AssayError(f"{component.name} has no artifact, so there is nothing to push", where=where, fix=fix)
    file = _fetch(fleet, component.artifact, where)
    _check_content(file, component.artifact, where)
    compared = compare_file(file, component)
    if compared.differs:
        fix = "replace the file or correct the bundle (`version` and `fits` of the artifact); nothing was pushed"
        raise AssayError(f"{component.artifact.name} is another file: {compared.differs}", where=where, fix=fix)
    return file, compared.describe()


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
        path = (fleet.root / artifact.path).resolve()
        if not path.is_relative_to(fleet.root.resolve()) or not path.is_file():
            raise AssayError(f"there is no file {artifact.path} in the repository", where=where, fix="add the image")
        return path
    folder = find_home_of(fleet).folder / FOLDER / artifact.sha256
    stored = ImageStore(folder).fetch_file(ImageArtifact(url=artifact.url, sha256=artifact.sha256), where)
    named = folder / artifact.name
    if not named.exists():
        named.symlink_to(stored.name)
    return named


def _check_content(file: Path, artifact: FirmwareArtifact, where: str) -> None:
    fix = "replace the file or correct the bundle; nothing was pushed"
    if artifact.size is not None and file.stat().st_size != artifact.size:
        what = f"{artifact.name} has {file.stat().st_size} bytes, but the bundle declares {artifact.size}"
        raise AssayError(what, where=where, fix=fix)
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != artifact.sha256:
        what = f"{artifact.name} has sha256 {found}, but the bundle declares {artifact.sha256}"
        raise AssayError(what, where=where, fix=fix)


def _find_line(fleet: Fleet, bundle: FirmwareBundle, component: FirmwareComponent) -> str:
    place = f"components.{bundle.components.index(component)}"
    return fleet.lines.get((f"FirmwareBundle/{bundle.name}", place), f"FirmwareBundle {bundle.name} {component.name}")
