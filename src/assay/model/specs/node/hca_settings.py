"""The firmware settings of a node's HCAs and NICs that a node spec may declare."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from assay.model.specs.spec_document import StrictModel

FirmwareSettingName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9_]*$")]
FirmwareSettingText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$")]
FirmwareSettingValue = bool | int | FirmwareSettingText
FirmwareSettingValues = dict[FirmwareSettingName, FirmwareSettingValue]


class HcaSettings(StrictModel):
    """Firmware settings by name, as `mstconfig` names them. What is not given is neither checked nor changed.

    `hcas`: the settings of all adapters of `hcas`. `nics`: the settings of all interfaces of `nics`. `by_name`: the
    settings of one adapter or interface, beside or instead of those.
    """

    hcas: FirmwareSettingValues = Field(default={})
    nics: FirmwareSettingValues = Field(default={})
    by_name: dict[str, FirmwareSettingValues] = Field(default={})
