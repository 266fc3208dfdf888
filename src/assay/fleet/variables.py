"""What assay reads of a host's Ansible variables. Everything else in an inventory is Ansible's own business."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from assay.model.spec import Strict

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Guid = Annotated[str, Field(pattern=r"^0x[0-9a-f]{16}$")]
Mac = Annotated[str, Field(pattern=r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$")]


def _sealed(value: Any) -> Any:
    """Return the text of a `!vault` scalar, as our reader and Ansible's JSON give it."""
    return value["__ansible_vault"] if isinstance(value, dict) and list(value) == ["__ansible_vault"] else value


SEALED: dict[str, Any] = {"type": "string", "pattern": r"^\$ANSIBLE_VAULT;"}
"""The text that `ansible-vault encrypt_string` prints after the tag `!vault`."""

Vault = Annotated[
    str,
    Field(pattern=SEALED["pattern"]),
    BeforeValidator(_sealed),
    WithJsonSchema(
        {
            "anyOf": [
                SEALED,
                {
                    "type": "object",
                    "properties": {"__ansible_vault": SEALED},
                    "required": ["__ansible_vault"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class Credentials(Strict):
    """Where the BMC's `user:password` is found: exactly one of four places.

    `env`: an environment variable. `file`: the first line of a file. `command`: the first line that a program prints
    (its argv, no shell). `vault`: Ansible's vault, inline, as `!vault`.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    env: str = Field(default="", min_length=1)
    file: str = Field(default="", min_length=1)
    command: list[str] = Field(default_factory=list, min_length=1)
    vault: Vault = ""

    @model_validator(mode="after")
    def _exactly_one(self) -> Credentials:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of env, file, command and vault")
        return self


class NodeVariables(BaseModel):
    """The variables of one node, groups and host merged.

    `serial_number` is not called `serial` because Ansible reserves that name and warns for every host.
    `mac` is of the interface that the node boots from. `hca_guids` are in rail order. `reach` is the argv prefix of a
    remote command (default: ssh to the node's name), `fabric_discover` the command that discovers the fabric,
    `fabric_facts` those that describe its ports, by name (`errors`: ibqueryerrors). `pool` is needed only where several
    groups list a host.
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
    fabric: Name | None = None
    workloads: Name = "none"
    lifecycle_start: Literal["onboard", "production"] = "onboard"
    reach: list[str] = Field(default_factory=list)
    fabric_discover: list[str] = Field(default_factory=list)
    fabric_facts: dict[str, list[str]] = Field(default_factory=dict)
    pool: str = ""
