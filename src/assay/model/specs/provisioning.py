"""Provisioning: how the machines of a site get from their first power-on to a node that reports itself.

The network of a node as its inventory declares it. It becomes cloud-init's network configuration, version 2.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_interface
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.specs.credential_reference import CredentialReference, TokenReferences
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel
from assay.model.specs.technician_work import SinkUrl

BootStage = Literal["pxe", "kernel", "cloud-init", "agent"]
BOOT_STAGES: tuple[BootStage, ...] = ("pxe", "kernel", "cloud-init", "agent")
"""What a booting node reports, in order."""
IdentityProof = Literal["tpm", "bmc-nonce"]
"""How a node proves which machine it is: a quote of its TPM, or a number that only its own BMC gave it."""
JoinPurpose = Literal["agent", "kubernetes", "slurm"]
"""What a join token is good for."""


class BootDeadlines(StrictModel):
    """Minutes from the power-on until a stage must have been reported; then the boot counts as failed.

    `pxe`: the boot script was fetched. `kernel`: the image's first program runs. `cloud_init`: it has its data.
    `agent`: the node's first document arrived.
    """

    pxe: float = Field(default=10, gt=0, le=240)
    kernel: float = Field(default=15, gt=0, le=240)
    cloud_init: float = Field(default=25, gt=0, le=240)
    agent: float = Field(default=30, gt=0, le=240)
    source: str = ""

    @model_validator(mode="after")
    def _rise(self) -> BootDeadlines:
        times = (self.pxe, self.kernel, self.cloud_init, self.agent)
        if list(times) != sorted(times):
            raise ValueError("a later stage has an earlier deadline")
        return self

    def find_minutes(self, stage: BootStage) -> float:
        """Return the deadline of a stage."""
        return float(getattr(self, stage.replace("-", "_")))


class NodeUser(StrictModel):
    """A user of the node's system.

    `name`: its name. `ssh_keys`: public keys. `groups`: more groups. `sudo`: whether it may become root.
    """

    name: str = Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")
    ssh_keys: list[Annotated[str, Field(pattern=r"^(ssh-|ecdsa-|sk-)[!-~]+ [A-Za-z0-9+/=]+( [ -~]*)?$")]] = Field(
        min_length=1
    )
    groups: list[str] = Field(default=[])
    sudo: bool = False


class NodeFile(StrictModel):
    """A file of the node. `path`: absolute. `content`: its text, no secret. `mode`: octal. `owner`: `user:group`."""

    path: str = Field(pattern=r"^/([^/\x00]+/)*[^/\x00]+$")
    content: str
    mode: str = Field(default="0644", pattern=r"^0[0-7]{3}$")
    owner: str = Field(default="root:root", pattern=r"^[a-z_][a-z0-9_-]*:[a-z_][a-z0-9_-]*$")


class KubernetesJoin(StrictModel):
    """How nodes join a Kubernetes cluster: with a bootstrap token that is made for each boot, and not before.

    `kubeconfig`, `context`: with which assay makes the tokens. `api_server`: the address for nodes. `ca_file`: the file
    with the cluster's authority, of which nodes get the certificates. `token_minutes`: how long a
    token is good. `labels`: of a new node. `taint_unproven`: it takes no customers' pods until assay has proved it.
    """

    kubeconfig: str = ""
    context: str = ""
    api_server: str = Field(pattern=r"^https://[^\s/]+$")
    ca_file: str
    token_minutes: float = Field(default=15, gt=0, le=120)
    labels: dict[str, str] = Field(default={})
    taint_unproven: bool = True


class SlurmJoin(StrictModel):
    """How nodes join a Slurm cluster. `conf_server`: `host:port` of slurmctld. `key`: where the munge or sack key is.

    `key_path`: where the node keeps it.
    """

    conf_server: str = Field(pattern=r"^[^\s:]+(:\d+)?$")
    key: CredentialReference
    key_path: str = "/etc/slurm/slurm.key"


class Joins(StrictModel):
    """What a node joins, each with a secret that it fetches with its proven identity; nothing is joined without one.

    `kubernetes`: a cluster. `slurm`: a cluster.
    """

    kubernetes: KubernetesJoin | None = None
    slurm: SlurmJoin | None = None


class ProvisionerOrder(StrictModel):
    """One request to a provisioner. Texts may hold `{node}`, `{serial}`, `{image}`, `{version}` or a host variable.

    `method`: of HTTP. `path`: below its `url`. `body`: JSON. `form`: fields of a form in its place. `after`: it is sent
    once the machine is in one of these states. `unless`: it is not sent in these.
    """

    method: Literal["POST", "PUT", "PATCH"] = "POST"
    path: str = Field(pattern=r"^/\S+$")
    body: Any = None
    form: dict[str, str] = Field(default={})
    after: list[str] = Field(default=[])
    unless: list[str] = Field(default=[])


class OtherProvisioner(StrictModel):
    """A tool that installs machines, by its HTTP API, such as Ironic or MAAS: assay orders, and proves the result.

    - `headers`: of each request; `{secret}` is what `credentials` lead to, `{nonce}` and `{timestamp}` are for OAuth.
    - `state_path`: where a GET tells a machine's state, `state_field`: where the answer has it, as in `status.state`.
    - `failed`: states in which an order has failed.

    `url`: of its API. `credentials`: the secret. `orders`: what installs a machine, in order.
    """

    url: SinkUrl
    headers: dict[str, str] = Field(default={})
    credentials: CredentialReference | None = None
    state_path: str = Field(pattern=r"^/\S+$")
    state_field: str
    failed: list[str] = Field(default=[])
    orders: list[ProvisionerOrder] = Field(min_length=1)


class Provisioning(SpecDocument):
    """How the nodes of some pools boot.

    - `pools`: the pools; empty means all.
    - `url`: where nodes reach `assay serve --boot`. The iPXE of a bare machine may know only HTTP.
    - `secure_url`: the same by HTTPS. Secrets are given over it alone.
    - `ca_file`: the authority that signed the server's certificate, for nodes.
    - `images`: by node spec, the Image that its nodes boot. A host's variable `boot_image` takes precedence.
    - `boot_target`: what a BMC lets its machine start from, in Redfish's words.
    - `attempts`: how often a machine is started before people must look.
    - `most_fetches`: how often it may fetch its boot script in a row. More often is a loop, and it must wait.
    - `proofs`: which proofs of identity count, the best one first.
    - `token_minutes`: how long a one-time token is good, from the moment at which the node fetched its boot script.
    - `timezone`, `packages`, `units`: of the node's system. `units`: systemd units to enable and start.

    `report_token`: what a DHCP server or another tool must present to report machines that it saw; one token or two.
    Without it, nobody may report any.

    `other`: the tool that installs these nodes in assay's place. The kernel's command line of what it installs must
    have `assay.image=` and the Image's label: with another boot, that proves it, until the deadline `agent`.

    `deadlines`: of the stages. `users`: who may log in. `files`: more files. `joins`: what nodes join.
    """

    kind: Literal["Provisioning"]
    sources: list[str] = Field(min_length=1)
    pools: list[SpecName] = Field(default=[])
    url: str = Field(pattern=r"^https?://[^\s/?#]+$")
    secure_url: str = Field(pattern=r"^https://[^\s/?#]+$")
    ca_file: str = ""
    images: dict[SpecName, SpecName] = Field(default={})
    boot_target: Literal["Pxe", "UefiHttp"] = "Pxe"
    attempts: int = Field(default=3, ge=1, le=20)
    most_fetches: int = Field(default=5, ge=1, le=100)
    proofs: list[IdentityProof] = Field(default=["tpm", "bmc-nonce"], min_length=1)
    token_minutes: float = Field(default=15, gt=0, le=120)
    deadlines: BootDeadlines = Field(default_factory=BootDeadlines)
    timezone: str = "Etc/UTC"
    users: list[NodeUser] = Field(default=[])
    packages: list[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+:=~-]*$")]] = Field(default=[])
    units: list[Annotated[str, Field(pattern=r"^[\w@.:-]+\.(service|timer|target|mount|socket)$")]] = Field(default=[])
    files: list[NodeFile] = Field(default=[])
    joins: Joins = Field(default_factory=Joins)
    report_token: TokenReferences = Field(default=[])
    other: OtherProvisioner | None = None

    def applies_to(self, pool: str) -> bool:
        """Whether the nodes of a pool boot this way."""
        return not self.pools or pool in self.pools


BOND_MODES = Literal["802.3ad", "active-backup", "balance-xor"]
InterfaceName = Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9_.-]{0,14}$")]


def _check_address(address: str) -> str:
    if "/" not in address:
        raise ValueError(f"{address} has no prefix length, such as /24")
    ip_interface(address)
    return address


def _check_host(address: str) -> str:
    ip_address(address)
    return address


Address = Annotated[str, AfterValidator(_check_address)]
HostAddress = Annotated[str, AfterValidator(_check_host)]
Gateway = Annotated[str, AfterValidator(lambda address: address and _check_host(address))]
RelayId = Annotated[str, Field(pattern=r"^$|^[ -~]{2,128}$")]


class NetworkLink(StrictModel):
    """What each link may have: addresses with prefix length, a gateway for all other networks, an MTU.

    `dhcp`: it asks for an address. `addresses`: fixed ones. `gateway`: the default route. `mtu`: in bytes.
    """

    dhcp: bool = False
    addresses: list[Address] = Field(default=[])
    gateway: Gateway = ""
    mtu: int | None = Field(default=None, ge=576, le=65520)


class EthernetLink(NetworkLink):
    """A physical interface, found by its MAC address and named as its key says.

    `mac`: its address; without it the interface must have the name already. `rail`: an IP address for the InfiniBand
    adapter of this rail is given to it.

    `circuit_id`, `remote_id`: what its switch tells a DHCP server of the port and of itself (option 82), as text or as
    bytes, `0x…`. With one of them, `assay boot dhcp` gives its IPv4 address to whatever asks from this port.
    """

    mac: str = Field(default="", pattern=r"^$|^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")
    rail: int | None = Field(default=None, ge=0, le=63)
    circuit_id: RelayId = ""
    remote_id: RelayId = ""


class BondLink(NetworkLink):
    """Several interfaces as one. `interfaces`: their names. `mode`: how they share the traffic."""

    interfaces: list[InterfaceName] = Field(min_length=1)
    mode: BOND_MODES = "802.3ad"


class VlanLink(NetworkLink):
    """A VLAN. `id`: its number. `link`: the interface or bond below it."""

    id: int = Field(ge=1, le=4094)
    link: InterfaceName


class NodeNetwork(StrictModel):
    """Every link of a node by name.

    `ethernets`: physical interfaces. `bonds`: of several interfaces. `vlans`: on interfaces or bonds. `nameservers`:
    DNS servers. `search`: DNS domains.
    """

    ethernets: dict[InterfaceName, EthernetLink] = Field(default={})
    bonds: dict[InterfaceName, BondLink] = Field(default={})
    vlans: dict[InterfaceName, VlanLink] = Field(default={})
    nameservers: list[HostAddress] = Field(default=[])
    search: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _links_exist(self) -> NodeNetwork:
        known = {*self.ethernets, *self.bonds}
        below = [(name, interface) for name, bond in self.bonds.items() for interface in bond.interfaces]
        for name, link in [*below, *((name, vlan.link) for name, vlan in self.vlans.items())]:
            if link not in known:
                raise ValueError(f"{name} stands on {link}, which is neither an interface nor a bond")
        return self
