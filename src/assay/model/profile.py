"""ManagementProfile: what automation may do to a node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.action import Action
from assay.model.spec import Spec


class ManagementProfile(Spec):
    """What automation may do.

    `actions`: the effects that it may have. `acts_on_faults`: whether a fault may move a node at all; where not,
    faults are tracked and shown. `hca_firmware`: whether zap brings the HCAs' firmware to the bundle.
    """

    kind: Literal["ManagementProfile"]
    sources: list[str] = Field(min_length=1)
    actions: list[Action]
    acts_on_faults: bool
    hca_firmware: bool
