"""What assay reads of a host's Ansible variables. Everything else in an inventory is Ansible's own business."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.fleet.kubernetes_cluster import KubernetesCluster
from assay.fleet.metrics import Metrics
from assay.fleet.transports import KubernetesExec, SlurmStep, Transport
from assay.model.credentials import Credentials, TokenReference

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Guid = Annotated[str, Field(pattern=r"^0x[0-9a-f]{16}$")]
Mac = Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$")]


class NodeVariables(BaseModel):
    """The variables of one node, groups and host merged.

    `serial_number` is not called `serial` because Ansible reserves that name and warns for every host.
    `mac` is of the interface that the node boots from. `hca_guids` are in rail order. `workloads` names the adapter of
    the node's scheduler (`kubernetes` is the setting of that one). `transport` is the way to the
    node's readings (`slurm_step`, `kubernetes_exec` and `metrics` are settings of three of them), `reach` the argv
    prefix of a remote command to use instead. `probe_command` is the argv of a probe that is installed on the node;
    without one, ours goes along. `agent_token` is what its agent must show: a node with one is expected to have one.
    `slurm_conf` is the slurm.conf of its Slurm, the environment's if "", `slurm_spare_partition` where work in spare
    time goes, `slurm_cordon` how a node is closed: drained, or reserved so that our own jobs can still run.
    `fabric_discover` is the command that discovers the fabric, `fabric_facts` those that describe its ports, by name
    (`errors`: ibqueryerrors). `pool` is needed only where several groups list a host.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    node_spec: Name
    profile: Name
    site: str
    rack: str
    u: int = Field(ge=1, le=60)
    serial_number: str = Field(min_length=1)
    mac: Mac | None = None
    bmc_mac: Mac | None = None
    hca_guids: list[Guid] = Field(default_factory=list)
    bmc_address: str = Field(default="", pattern=r"^[\w.:-]*$")
    bmc_port: int = Field(default=443, ge=1, le=65535)
    bmc_credentials: Credentials | None = None
    bmc_ca: str = ""
    bmc_fingerprint: str = Field(default="", pattern=r"^(sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31})?$")
    fabric: Name | None = None
    workloads: Name = "none"
    slurm_conf: str = ""
    slurm_spare_partition: str = ""
    slurm_cordon: Literal["drain", "reservation"] = "drain"
    kubernetes: KubernetesCluster | None = None
    lifecycle_start: Literal["onboard", "production"] = "onboard"
    reach: list[str] = Field(default_factory=list)
    transport: Transport = "ssh"
    slurm_step: SlurmStep | None = None
    kubernetes_exec: KubernetesExec | None = None
    metrics: Metrics | None = None
    probe_command: list[str] = Field(default_factory=list)
    agent_token: TokenReference | None = None
    fabric_discover: list[str] = Field(default_factory=list)
    fabric_facts: dict[str, list[str]] = Field(default_factory=dict)
    pool: str = ""
