"""What a site declares for the load tools of its nodes, such as the variables of NCCL and the command for HPL."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from assay.model.specs.node.load_delivery import AbsolutePath, VariableName, VariableText
from assay.model.specs.node.site_training import SiteTraining
from assay.model.specs.spec_document import StrictModel

Word = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]
HostAddress = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")]


class LoadToolSettings(StrictModel):
    """Settings of the load tools on a node. A part that needs a setting which is not given does not run, and says so.

    `environment`: variables for the tools, such as those of NCCL for this site. They see no others but PATH and the
    like. `scratch`: a folder on the node's own drives, in which `fio_verify` writes. `hpl`: the words of the command
    that runs HPL. `iperf3_server`: the host that `front_end` sends to. `rack_hosts`: the nodes of the rack, for
    `dcgm_mndiag`. `training`: a training workload of the site, for `site_training`.
    """

    environment: dict[VariableName, VariableText] = Field(default={})
    scratch: AbsolutePath = "/var/tmp"  # noqa: S108 — a folder of each test's own is made in it
    hpl: list[Word] = Field(default=[])
    iperf3_server: HostAddress | None = None
    rack_hosts: list[HostAddress] = Field(default=[])
    training: SiteTraining | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON data, as the probe takes it."""
        return self.model_dump(mode="json", exclude_none=True, exclude_defaults=True, by_alias=True)
