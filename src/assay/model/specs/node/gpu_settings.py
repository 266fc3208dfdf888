"""The settings of a node's GPUs that a node spec may declare."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.specs.spec_document import StrictModel


class ApplicationClocks(StrictModel):
    """The application clocks of a GPU, a pair that `nvidia-smi -q -d SUPPORTED_CLOCKS` lists.

    `memory_mhz`: the clock of its memory. `graphics_mhz`: the clock of its processors.
    """

    memory_mhz: int = Field(gt=0)
    graphics_mhz: int = Field(gt=0)


class GpuSettings(StrictModel):
    """The settings of all GPUs. A field that is not given is not checked, except for clocks and power limit.

    `persistence`: whether the driver stays loaded between jobs. `ecc`: whether the memory corrects errors. `mig`:
    whether the GPUs are partitioned. `compute_mode`: how many processes may use a GPU. `application_clocks`: the clocks
    of jobs; not given, they must not be below the default. `power_limit_w`: the requested power limit in watts; not
    given, it must not be below the default.
    """

    persistence: bool | None = None
    ecc: bool | None = None
    mig: bool | None = None
    compute_mode: Literal["default", "exclusive_process", "prohibited"] | None = None
    application_clocks: ApplicationClocks | None = None
    power_limit_w: int | None = Field(default=None, gt=0)
