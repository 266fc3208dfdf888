"""ManagementProfile."""

from __future__ import annotations

from typing import Literal

from assay.model.spec import Spec


class ManagementProfile(Spec):
    """ManagementProfile."""

    kind: Literal["ManagementProfile"]
