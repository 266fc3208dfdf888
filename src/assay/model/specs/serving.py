"""AccessRules: who may read the pages and the API of `assay serve`, and who may give orders there.

What comes in and what is kept: limits of `assay serve` for connections and nodes, silent nodes, and old runs.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.specs.credential_reference import CredentialReference, TokenReferences
from assay.model.specs.spec_document import StrictModel

VisitorRole = Literal["viewer", "customer", "technician", "operator"]
VisitorName = Annotated[str, Field(pattern=r"^[\w.@+-]{1,64}$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]


def _check_network(text: str) -> str:
    ipaddress.ip_network(text)
    return text


NetworkAddress = Annotated[str, AfterValidator(_check_network)]
"""An address, or a network without host bits: 10.0.0.7, 10.1.0.0/24, fd00::/64."""


class VisitorRights(StrictModel):
    """What visitors may see and do.

    `role`: a `viewer` sees everything. A `customer` sees the nodes of its `pools`, in plain words. A `technician` is a
    viewer who may certify. An `operator` may give every order. `pools`: those of a customer.
    """

    role: VisitorRole
    pools: list[str] = Field(default=[])

    @model_validator(mode="after")
    def _pools_of_customers(self) -> VisitorRights:
        if (self.role == "customer") != bool(self.pools):
            raise ValueError("a customer has pools, and nobody else has")
        return self


class DeclaredVisitor(VisitorRights):
    """A visitor by name. `token`: one or two tokens, each of which is good. Without one, only a proxy can name it."""

    token: TokenReferences = Field(default=[])


class ProxyTrust(StrictModel):
    """A proxy that has checked who asks, and says so in headers. It must remove these headers from what it receives.

    `addresses`: from where it connects; headers from elsewhere do not count. `user_header`: the name of the person.
    `groups_header`: the groups, separated by commas. `groups`: what members may, for people who are not in `visitors`;
    of several groups, the first one here counts.
    """

    addresses: list[NetworkAddress] = Field(min_length=1)
    user_header: HeaderName = "X-Forwarded-User"
    groups_header: HeaderName = "X-Forwarded-Groups"
    groups: dict[str, VisitorRights] = Field(default={})


class AccessRules(StrictModel):
    """Who may use the pages and the API of `assay serve`. Without it, who has the token in a file there may read.

    `visitors`: people and programs by name. `proxy`: who else says who asks. `session_hours`: how long a login lasts.
    `session_key`: at least 32 characters that sign the logins; without it, they end with the server.
    """

    visitors: dict[VisitorName, DeclaredVisitor] = Field(default={})
    proxy: ProxyTrust | None = None
    session_hours: float = Field(default=12, gt=0, le=168)
    session_key: CredentialReference | None = None


class ConnectionLimits(StrictModel):
    """How many connections `assay serve` keeps open, and for how long. deploy/nginx.conf limits each address.

    - `total`: connections in all; above it, requests get a 503.
    - `body_seconds`: from the header of a request to the end of its body. `idle_seconds`: between two requests.
    """

    total: int = Field(default=16384, ge=16)
    body_seconds: float = Field(default=30, gt=0, le=600)
    idle_seconds: float = Field(default=75, gt=0, le=3600)


class NodeDeliveryLimits(StrictModel):
    """What one node may write into the ledger. More makes its agent wait, or is counted in a fault of its own.

    - `open_faults`: different open faults of one severity. More are counted in the fault `telemetry.flooded`.
    - `batches_at_once`, `batches_per_second`: deliveries of its agent, as a burst and afterwards.
    - `entries_at_once`, `entries_per_minute`: ledger entries from its deliveries.
    - `mib_at_once`, `mib_per_minute`: size of its deliveries, in MiB.
    """

    open_faults: int = Field(default=128, ge=1)
    batches_at_once: int = Field(default=200, ge=1)
    batches_per_second: float = Field(default=40, gt=0)
    entries_at_once: int = Field(default=12000, ge=1)
    entries_per_minute: float = Field(default=300, gt=0)
    mib_at_once: float = Field(default=32, ge=8)
    mib_per_minute: float = Field(default=16, gt=0)


class IntakeLimits(StrictModel):
    """What `assay serve` accepts in all (`connections`) and from one node (`node`)."""

    connections: ConnectionLimits = Field(default_factory=ConnectionLimits)
    node: NodeDeliveryLimits = Field(default_factory=NodeDeliveryLimits)
    source: str = ""


class SilenceLimits(StrictModel):
    """How long a node may be silent before the fault `telemetry.lost` is recorded.

    `agent_minutes`: no batch from the agent, where the inventory declares one. `readings_minutes`: no answer from the
    probe or the BMC. Time without `assay serve` (for agents) or without polls (for readings) does not count.
    """

    agent_minutes: float = Field(default=5, gt=0)
    readings_minutes: float = Field(default=60, gt=0)


class RetentionRules(StrictModel):
    """What `assay prune` may delete. Without it, everything is kept.

    `runs_days`: files of runs that are older may be deleted, with the artefacts that no other run has; archives of
    `collect` too, but of no open incident. `least_runs`: so many of the newest runs are kept, however old they are.
    `outcomes_days`: outcomes in the ledger that are of older runs may be deleted, but never the newest of a check, a
    subject and a verdict. `evidence_days`: evidence that was last stored or judged earlier may be deleted, if nothing
    that stays refers to it. `source`: the reason.
    """

    runs_days: float | None = Field(default=None, gt=0)
    least_runs: int = Field(default=20, ge=2)
    outcomes_days: float | None = Field(default=None, gt=0)
    evidence_days: float | None = Field(default=None, ge=14)  # the weekly evaluation of fabrics reads a week of scans
    source: str = ""
