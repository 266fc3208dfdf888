"""Finds the file that is pushed for a component: the vendor's, by its digest; in the lab, one that its BMCs read."""

from __future__ import annotations

from pathlib import Path

from assay.act.boot.image_store import ImageStore, compute_digest
from assay.act.remedies.file_statement import compare_file
from assay.declare.home import find_home_of
from assay.declare.rules.firmware_bundles import resolve_artifact
from assay.declare.stand_ins import refuse_spec
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.lab_firmware_image import make_image
from assay.model.specs.firmware_bundle import FirmwareArtifact, FirmwareBundle, FirmwareComponent
from assay.model.specs.image_spec import ImageArtifact

FOLDER = "firmware"


def find_image(fleet: Fleet, bundle: FirmwareBundle, component: FirmwareComponent) -> tuple[Path, str]:
    """Return the file to push, and what a comparison of it with the bundle found.

    Raises AssayError for a bundle that stands in for a site's own, for a component without an artifact, and for a file
    that cannot be fetched, has another digest or size, or says that it is something else. Then nothing is pushed.
    """
    if fleet.is_lab:
        return _make_lab_file(find_home_of(fleet).world / FOLDER, component), "an image of the lab"
    refuse_spec(fleet, bundle, f"a push of {component.name}")
    path = f"components.{bundle.components.index(component)}"
    where = fleet.lines.get((f"FirmwareBundle/{bundle.name}", path), f"FirmwareBundle {bundle.name} {component.name}")
    artifact = component.artifact
    if artifact is None:
        fix = "add its `artifact`: url, sha256, size and the vendor's name of the file"
        raise AssayError(f"{component.name} has no artifact, so there is nothing to push", where=where, fix=fix)
    file = _fetch(fleet, artifact, where)
    differs, told = compare_file(file, artifact, artifact.version or component.version)
    if other := _describe_other_content(file, artifact) or differs:
        fix = "replace the file or correct the artifact; nothing was pushed"
        raise AssayError(f"{artifact.name} is not what the bundle declares: {other}", where=where, fix=fix)
    return file, told


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
    found = compute_digest(file)
    return "" if found == artifact.sha256 else f"its sha256 is {found}, not {artifact.sha256}"
