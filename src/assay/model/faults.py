"""FaultCatalog."""

from __future__ import annotations

from typing import Literal

from assay.model.spec import Spec


class FaultCatalog(Spec):
    """FaultCatalog."""

    kind: Literal["FaultCatalog"]
