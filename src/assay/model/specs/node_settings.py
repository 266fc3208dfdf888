"""What assay reads of a host's Ansible variables. Everything else in an inventory is Ansible's own business.

What an inventory may say of the Kubernetes cluster that places pods on a node.

What an inventory may say of the Prometheus that scrapes a node already.

What an inventory may say of the way to a node's readings.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assay.model.specs.credential_reference import CredentialReference, TokenReference
from assay.model.specs.monitoring import MetricLabel
from assay.model.specs.spec_document import SpecName, StrictModel


class KubernetesClusterSettings(StrictModel):
    """Where the API server is, and what there is ours.

    `kubeconfig` is a file, which holds or leads to the credentials, `context` one of its contexts (by default its
    current one). Without `kubeconfig`, a pod uses its own service account, anything else the file that kubectl would
    use. `namespace` is ours alone; `spare` names the PodTemplate in it from which pods for spare time are made.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: SpecName = "assay"
    spare: SpecName = Field(default="assay-spare")


PrometheusUrl = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]
LabelTemplate = Annotated[str, Field(pattern=r"^[^{}]*(\{name\}[^{}]*)?$")]
TLS_FINGERPRINT = r"^(sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31})?$"


class PrometheusSettings(StrictModel):
    """Which Prometheus knows the node, and by which labels.

    `match`: a series is the node's when one of the labels with `{name}` reads so, filled with the node's name; labels
    without it narrow every query (`cluster: hall1`). `credentials` hold `user:password`, `token` a bearer's. A sample
    may be `stale_s` old. XIDs are looked for over `xid_hours`, which must be longer than from pass to pass.
    `monitoring` names the document that maps metrics to readings.
    """

    url: PrometheusUrl
    match: dict[MetricLabel, LabelTemplate] = Field(min_length=1)
    credentials: CredentialReference | None = None
    token: CredentialReference | None = None
    ca: str = ""
    fingerprint: str = Field(default="", pattern=TLS_FINGERPRINT)
    stale_s: float = Field(default=180, gt=0, le=3600)
    xid_hours: float = Field(default=24, gt=0, le=168)
    monitoring: SpecName = "exporters"

    @model_validator(mode="after")
    def _makes_sense(self) -> PrometheusSettings:
        if not any("{name}" in text for text in self.match.values()):
            raise ValueError("no label of `match` names the node: write {name} where its name stands")
        if self.credentials and self.token:
            raise ValueError("give credentials or token, not both")
        if (self.credentials or self.token) and self.url.startswith("http://") and not _is_loopback(self.url):
            raise ValueError("secrets do not travel in the clear: use https, or a Prometheus on this machine")
        return self


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


TransportName = Literal["ssh", "local", "slurm", "kubernetes", "push", "prometheus"]


class SlurmStepSettings(StrictModel):
    """How Slurm runs the probe on the node.

    `node` is its name there where that is another. `join`: overlap the job that runs there, if any. `options` are more
    of srun's, such as a partition or an account.
    """

    node: str = ""
    join: bool = False
    options: list[str] = Field(default_factory=list)


class KubernetesExecSettings(StrictModel):
    """Which pod sees the node: one of `namespace` with the labels `pods`, on the cluster's `node` of that name."""

    context: str = ""
    namespace: str = Field(default="assay", min_length=1)
    pods: str = Field(default="app.kubernetes.io/name=assay-agent", min_length=1)
    container: str = ""
    node: str = ""


SettingName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
HcaGuid = Annotated[str, Field(pattern=r"^0x[0-9a-f]{16}$")]
MacAddress = Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$")]


class NodeSettings(BaseModel):
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

    node_spec: SettingName
    profile: SettingName
    site: str
    rack: str
    u: int = Field(ge=1, le=60)
    serial_number: str = Field(min_length=1)
    mac: MacAddress | None = None
    bmc_mac: MacAddress | None = None
    hca_guids: list[HcaGuid] = Field(default_factory=list)
    bmc_address: str = Field(default="", pattern=r"^[\w.:-]*$")
    bmc_port: int = Field(default=443, ge=1, le=65535)
    bmc_credentials: CredentialReference | None = None
    bmc_ca: str = ""
    bmc_fingerprint: str = Field(default="", pattern=r"^(sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31})?$")
    fabric: SettingName | None = None
    workloads: SettingName = "none"
    slurm_conf: str = ""
    slurm_spare_partition: str = ""
    slurm_cordon: Literal["drain", "reservation"] = "drain"
    kubernetes: KubernetesClusterSettings | None = None
    lifecycle_start: Literal["onboard", "production"] = "onboard"
    reach: list[str] = Field(default_factory=list)
    transport: TransportName = "ssh"
    slurm_step: SlurmStepSettings | None = None
    kubernetes_exec: KubernetesExecSettings | None = None
    metrics: PrometheusSettings | None = None
    probe_command: list[str] = Field(default_factory=list)
    agent_token: TokenReference | None = None
    fabric_discover: list[str] = Field(default_factory=list)
    fabric_facts: dict[str, list[str]] = Field(default_factory=dict)
    pool: str = ""
