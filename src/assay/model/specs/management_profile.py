"""ManagementProfile: what automation may do to a node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.decision import ActionName
from assay.model.specs.spec_document import SpecDocument


class ManagementProfile(SpecDocument):
    """What automation may do to a node.

    `actions`: the actions that it may take. `acts_on_faults`: whether a fault may move a node; otherwise faults are
    only recorded and shown. `hca_firmware`: whether zap updates the HCAs' firmware to the bundle's versions.
    `host_settings`: whether zap brings the settings of the operating system, such as kernel, driver and sysctls.
    """

    kind: Literal["ManagementProfile"]
    sources: list[str] = Field(min_length=1)
    actions: list[ActionName]
    acts_on_faults: bool
    hca_firmware: bool
    host_settings: bool = True
