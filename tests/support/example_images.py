"""The lab's firmware images of the example's bundles: component → (version, inventory ids)."""

from __future__ import annotations

import yaml

from assay.model.specs.firmware_bundle import make_image
from tests.support.places import ROOT

BUNDLE = yaml.safe_load((ROOT / "specs/firmware/hgx-h100-2026-10.yaml").read_text())
IMAGES: dict[str, tuple[str, list[str]]] = {
    part["name"]: (part["version"], part["inventory"]) for part in BUNDLE["components"]
}

__all__ = ["BUNDLE", "IMAGES", "make_image"]
