"""ManagementProfile: what automation may do to a node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.decision import ActionName
from assay.model.specs.spec_document import SpecDocument

FarEffect = Literal["ac-cycles", "boot-order", "network-starts", "other-accounts", "wipe"]
"""What reaches further than a node's settings and firmware."""


class ManagementProfile(SpecDocument):
    """What automation may do to a node.

    `actions`: the actions that it may take. `acts_on_faults`: whether a fault may move a node; otherwise faults are
    only recorded and shown. `hca_firmware`: whether zap updates the HCAs' firmware to the bundle's versions.
    `host_settings`: whether zap brings the settings of the operating system, such as kernel, driver and sysctls.

    `may`: what reaches further than that, so that each must be named. `ac-cycles`: zap cuts all power of a node for
    firmware that needs it. `boot-order`: it writes `boot.first` of the node spec. `network-starts`: each reboot and
    power cycle orders a start by network. `other-accounts`: with `bmc.accounts.complete`, zap disables every account of
    the BMC that the spec does not name. `wipe`: the action of this name erases drives, as `wipe` of the spec says.
    """

    kind: Literal["ManagementProfile"]
    sources: list[str] = Field(min_length=1)
    actions: list[ActionName]
    acts_on_faults: bool
    hca_firmware: bool
    host_settings: bool = True
    may: list[FarEffect] = Field(default=[])
