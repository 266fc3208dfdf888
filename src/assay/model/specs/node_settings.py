"""The Ansible variables of a node that assay reads, with their types and bounds.

`NodeVariables` is all of them. It divides into `NodeIdentity`, which differs from node to node, and `NodeSettings`,
which most nodes of a pool have in common. The settings of transports that are not assay's own are checked by the models
of these plug-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from assay.model.errors import AssayError, ConflictError, FieldConflict
from assay.model.plugins import TRANSPORTS
from assay.model.specs.credential_reference import CredentialReference, TokenReferences
from assay.model.specs.fabric.design_parts import expand_node_names
from assay.model.specs.load_parts import TOOLS_OF_SITE
from assay.model.specs.monitoring import TLS_FINGERPRINT, PrometheusSettings
from assay.model.specs.node.load_tools import LoadDelivery, LoadToolSettings
from assay.model.specs.provisioning import NodeNetwork
from assay.model.specs.spec_document import IsoDay, SpecName, StrictModel


class _TransportNames:
    """Lists the installed transports in a JSON Schema."""

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "enum": TRANSPORTS.names()}


def _require_installed(name: str) -> str:
    if name in (names := TRANSPORTS.names()):
        return name
    expected = f"{', '.join(map(repr, names[:-1]))} or {names[-1]!r}"
    raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})


TransportName = Annotated[str, AfterValidator(_require_installed), _TransportNames()]
"""The name of an installed transport."""


class KubernetesClusterSettings(StrictModel):
    """The API server of a Kubernetes cluster, and assay's namespace in it.

    `kubeconfig` is a file with, or with references to, credentials; `context` is one of its contexts (default: the
    current one). Without `kubeconfig`, a pod uses its service account; elsewhere kubectl's default file is used. Only
    assay uses `namespace`. `spare` names the PodTemplate in it for pods that run in spare time.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: SpecName = "assay"
    spare: SpecName = Field(default="assay-spare")


class SlurmStepSettings(StrictModel):
    """How Slurm runs the probe on the node.

    `node`: its name in Slurm, if that differs. `join`: overlap a job that runs there. `options`: more options of srun,
    such as a partition or an account.
    """

    node: str = ""
    join: bool = False
    options: list[str] = Field(default_factory=list)


class KubernetesExecSettings(StrictModel):
    """The pod that runs the probe: one in `namespace` with the labels `pods`, on the cluster's node `node`.

    `context`: the context of kubectl's configuration. `container`: the one to run in, if the pod has several. `node` is
    needed only where the cluster has another name for it.
    """

    context: str = ""
    namespace: str = Field(default="assay", min_length=1)
    pods: str = Field(default="app.kubernetes.io/name=assay-agent", min_length=1)
    container: str = ""
    node: str = ""


HcaGuid = Annotated[str, Field(pattern=r"^0x[0-9a-f]{16}$")]
MacAddress = Annotated[
    str,
    Field(pattern=r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"),
    AfterValidator(lambda written: written.lower().replace("-", ":")),
]
"""A MAC address in the one form of DHCP servers."""


class AnsibleConnection(NamedTuple):
    """How Ansible reaches a node: its variables `ansible_<field>`, as written. A text may be a Jinja template."""

    host: str = ""
    port: str = ""
    user: str = ""
    ssh_private_key_file: str = ""
    ssh_common_args: str = ""
    ssh_extra_args: str = ""
    python_interpreter: str = ""
    become: bool = False


class NodeIdentity(BaseModel):
    """The variables that identify one machine, say where it stands and what it must be.

    `serial_number` is not called `serial`: Ansible reserves that name and warns for every host. `mac` belongs to the
    interface that the node boots from. `hca_guids` are in rail order.

    `node_spec`: the NodeSpec that it must match. `profile`: the ManagementProfile, what automation may do to it.
    `site`: the building. `rack`: the rack. `rack_height_u`: the rack's height. `u`: its lowest rack unit, counted from
    the bottom. `bmc_mac`: the MAC address of its BMC. `bmc_address`: the BMC's IP address or host name.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, defer_build=True)

    node_spec: SpecName
    profile: SpecName
    site: str
    rack: str
    rack_height_u: int = Field(default=48, ge=4, le=60)
    u: int = Field(ge=1, le=60)
    serial_number: str = Field(min_length=1)
    mac: MacAddress | None = None
    bmc_mac: MacAddress | None = None
    hca_guids: list[HcaGuid] = Field(default_factory=list)
    bmc_address: str = Field(default="", pattern=r"^[\w.:-]*$")


DEFAULT_START = "onboard"
"""The state in which a new node starts its way into service."""


def _expand_ranges(entries: list[str]) -> list[str]:
    return [name for entry in entries for name in expand_node_names(entry)]


class ServiceImport(StrictModel):
    """Nodes that serve already when assay first sees them: until `expires` they start in service, without proof.

    It counts once for each node, when the ledger does not know it yet. Any other node enters service through proof.

    `nodes`: names or ranges. `reason`: why they need no proof.
    """

    nodes: Annotated[list[str], AfterValidator(_expand_ranges)] = Field(min_length=1)
    reason: str = Field(min_length=1)
    expires: IsoDay

    @cached_property
    def names(self) -> frozenset[str]:
        """The nodes, to look one up."""
        return frozenset(self.nodes)

    @property
    def expires_at(self) -> datetime:
        """The time (UTC) from which it lets no node in."""
        return datetime.fromisoformat(self.expires).replace(tzinfo=UTC)


class Credit(StrictModel):
    """In a month with less than `below` percent, customers are credited `percent` of its price."""

    below: float = Field(gt=0, le=100)
    percent: float = Field(gt=0, le=100)


class AgreedLevel(StrictModel):
    """What share of the declared node-hours of a month customers get (`percent`), from the day `since` on.

    `credit`: what is paid back where it was less; of several, the highest that applies counts. `source`: the contract.
    """

    percent: float = Field(gt=0, le=100)
    since: IsoDay
    credit: list[Credit] = Field(default_factory=list)
    source: str = Field(min_length=1)

    def find_credit(self, percent: float) -> float:
        """Return what percentage of the price is credited for such a month."""
        return max((credit.percent for credit in self.credit if percent < credit.below), default=0.0)


class PoolCapacity(StrictModel):
    """How many nodes of a pool customers get (`delivered`), and how many more wait to take their places (`spares`).

    The nodes that pass their tests first are delivered; what the pool has more becomes a spare. `service_level`: what
    is agreed on with customers.
    """

    delivered: int = Field(ge=1)
    spares: int = Field(default=0, ge=0)
    service_level: AgreedLevel | None = None


class BmcConsole(StrictModel):
    """How conserver reads the serial console of a node.

    `way`: `ssh`, by the login of `bmc_credentials`; `ipmi`, serial over LAN with the same login; or `program`.
    `port`: 2200 for ssh (OpenBMC's console) and 623 for ipmi, if it is not given. `command`: what is called by ssh
    where the login alone does not open the console, or the program (argv).
    """

    way: Literal["ssh", "ipmi", "program"] = "ssh"
    port: int = Field(default=0, ge=0, le=65535)
    command: list[str] = Field(default_factory=list)


class NodeSettings(BaseModel):
    """The variables that say how assay reaches and treats a node. Most nodes of a pool have the same.

    - `workloads`: the scheduler adapter. `kubernetes` and `slurm_*` are settings of two of them. `slurm_conf` is the
      path of slurm.conf ("": from the environment), `slurm_spare_partition` the partition for work in spare time,
      `slurm_cordon` whether a cordon drains the node or reserves it, so that assay's own jobs can still run.
    - `transport`: how the node's readings arrive, by the name of an installed transport. `slurm_step`,
      `kubernetes_exec` and `metrics` are settings of three transports. `reach`, the argv prefix of a remote command,
      takes precedence over `transport`. `probe_command` is the argv of a probe installed on the node; by default assay
      sends its own.
    - `load`: how the load tool `assay-load` gets to the node; without it, the node has it in its PATH. `load_tools`:
      what the other load tools of the node need.
    - `agent_token`: what the node's agent must present; two while a token is replaced. A node that declares one is
      expected to run an agent.
    - `fabric_discover`: the argv that discovers the fabric. `fabric_facts`: the argv of each command that describes
      the fabric's ports, by name (`errors`: ibqueryerrors). `pdu`: the PDU, or the pair of PDUs, that feeds the node.
    - `bmc_port`: the BMC's port for HTTPS. `bmc_credentials`: where its `user:password` is. `bmc_ca`: the file of the
      authority that signed its certificate. `bmc_fingerprint`: the SHA-256 of its certificate, or of its public key
      (DER): then one that a flash renews for the same key is accepted. `bmc_system`: the Id of the node's system, where
      the BMC shows its serial number on none, or on several. `bmc_console`: how its serial console is recorded.
    - `fabric`: the design of its adapters. `lifecycle_start`: the state of a new node. `service_import`: nodes that
      serve already. `capacity`: how many nodes its pool delivers, and how many are spares.
      `customer`: whose nodes these are, by name; "" for the site's own. The policy's `hand_over` says what must be
      proved before a node that served another customer serves this one.
      `boot_image`: the Image that it boots. `node_network`: its links, for cloud-init. `endorsement_key_sha256`: the
      digest of the public endorsement key (DER) by which its TPM proves the machine.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    bmc_port: int = Field(default=443, ge=1, le=65535)
    bmc_credentials: CredentialReference | None = None
    bmc_ca: str = ""
    bmc_fingerprint: str = Field(default="", pattern=TLS_FINGERPRINT)
    bmc_system: str = ""
    bmc_console: BmcConsole | None = None
    fabric: SpecName | None = None
    pdu: str = ""
    workloads: SpecName = "none"
    slurm_conf: str = ""
    slurm_spare_partition: str = ""
    slurm_cordon: Literal["drain", "reservation"] = "drain"
    kubernetes: KubernetesClusterSettings | None = None
    lifecycle_start: SpecName = DEFAULT_START
    service_import: ServiceImport | None = None
    capacity: PoolCapacity | None = None
    customer: str = Field(default="", pattern=r"^[\w.@+-]{0,64}$")
    reach: list[str] = Field(default_factory=list)
    transport: TransportName = "ssh"
    slurm_step: SlurmStepSettings | None = None
    kubernetes_exec: KubernetesExecSettings | None = None
    metrics: PrometheusSettings | None = None
    probe_command: list[str] = Field(default_factory=list)
    load: LoadDelivery | None = None
    load_tools: LoadToolSettings | None = None
    agent_token: TokenReferences = Field(default_factory=list)
    fabric_discover: list[str] = Field(default_factory=list)
    fabric_facts: dict[str, list[str]] = Field(default_factory=dict)
    boot_image: SpecName | None = None
    node_network: NodeNetwork | None = None
    endorsement_key_sha256: str = Field(default="", pattern=r"^$|^[0-9a-f]{64}$")

    @model_validator(mode="before")
    @classmethod
    def _plugin_settings_fit(cls, variables: Any) -> Any:
        if isinstance(variables, Mapping):
            check_plugin_settings(variables)
        return variables

    @property
    def other_variables(self) -> Mapping[str, Any]:
        """The variables that assay itself does not read. The plug-ins of others find their settings here."""
        return self.model_extra or {}

    @property
    def site_tools(self) -> frozenset[str]:
        """Which of ToolOfSite are declared."""
        tools = self.load_tools
        return frozenset(name for name in TOOLS_OF_SITE if getattr(tools, name)) if tools else frozenset()

    @property
    def ansible(self) -> AnsibleConnection:
        """Ansible's connection variables."""
        variables = self.other_variables

        def text(name: str) -> str:
            return str(variables.get(f"ansible_{name}", ""))

        return AnsibleConnection(
            host=text("host"),
            port=text("port"),
            user=text("user"),
            ssh_private_key_file=text("ssh_private_key_file"),
            ssh_common_args=text("ssh_common_args"),
            ssh_extra_args=text("ssh_extra_args"),
            python_interpreter=text("python_interpreter"),
            become=variables.get("ansible_become") is True,
        )


class NodeVariables(NodeSettings, NodeIdentity):
    """Every Ansible variable that assay reads of a node, from its groups and from the host itself.

    `pool` is needed only for a host that several groups list.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, defer_build=True)

    pool: str = ""


IDENTITY_VARIABLES = frozenset(NodeVariables.model_fields.keys() - NodeSettings.model_fields.keys())


def make_node_settings(variables: Mapping[Any, Any]) -> NodeSettings:
    """Return the settings among a host's merged variables. Raises ValidationError for a variable that does not fit."""
    names = (name for name in variables if isinstance(name, str) and name not in IDENTITY_VARIABLES)
    return NodeSettings.model_validate({name: variables[name] for name in names})


def make_node_variables(variables: Mapping[Any, Any], shared: NodeSettings) -> NodeVariables:
    """Return a host's merged variables. `shared`: the settings among them, whose models it uses instead of copies.

    A service import lists hundreds of nodes, and 10,000 copies of it take 200 MB. Raises ValidationError.
    """
    models = {name: value for name, value in vars(shared).items() if isinstance(value, BaseModel)}
    return NodeVariables.model_validate({**variables, **models})


def check_plugin_settings(variables: Mapping[Any, Any]) -> None:
    """Check a node's variables against the settings model of its transport, unless that is one of assay's own.

    Raises ConflictError for settings that do not fit, and for a transport that cannot be loaded.
    """
    name = variables.get("transport")
    if not isinstance(name, str) or name not in TRANSPORTS.names() or TRANSPORTS.is_own(name):
        return
    try:
        transport = TRANSPORTS.load(name)
    except AssayError as error:
        raise ConflictError(FieldConflict("ASY0004", ("transport",), error.what, error.fix)) from None
    if transport.settings_model is None:
        return
    try:
        transport.settings_model.model_validate(variables.get(transport.settings_name) or {})
    except ValidationError as error:
        raise ConflictError(*_list_conflicts(transport.settings_name, error)) from None


def _list_conflicts(variable: str, error: ValidationError) -> list[FieldConflict]:
    conflicts = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        path = (variable, *problem["loc"])
        message = f"{'.'.join(map(str, path))}: {problem['msg']}"
        conflicts.append(FieldConflict("ASY0004", path, message, "correct it as the transport's documentation says"))
    return conflicts
