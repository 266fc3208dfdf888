"""FabricDesign."""

from __future__ import annotations

from typing import Literal

from assay.model.spec import Spec


class FabricDesign(Spec):
    """FabricDesign."""

    kind: Literal["FabricDesign"]
