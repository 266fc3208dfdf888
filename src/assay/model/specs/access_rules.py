"""AccessRules: who may read the pages and the API of `assay serve`, and who may give orders there."""

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
    """Who may use the pages and the API of `assay serve`. If it is left out, people on its own machine may read.

    `visitors`: people and programs by name. `proxy`: who else says who asks. `session_hours`: how long a login lasts.
    `session_key`: at least 32 characters that sign the logins; without it, they end with the server.
    """

    visitors: dict[VisitorName, DeclaredVisitor] = Field(default={})
    proxy: ProxyTrust | None = None
    session_hours: float = Field(default=12, gt=0, le=168)
    session_key: CredentialReference | None = None
