"""References to secrets. Files in git hold such references, never the secret itself."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from assay.model.specs.spec_document import StrictModel


def _read_vault_text(value: Any) -> Any:
    """Return the text of a `!vault` scalar; assay's YAML reader and Ansible's JSON both give a mapping of one key."""
    return value["__ansible_vault"] if isinstance(value, dict) and list(value) == ["__ansible_vault"] else value


VAULT_TEXT_SCHEMA: dict[str, Any] = {"type": "string", "pattern": r"^\$ANSIBLE_VAULT;"}
"""What `ansible-vault encrypt_string` prints after the tag `!vault`."""

VaultText = Annotated[
    str,
    Field(pattern=VAULT_TEXT_SCHEMA["pattern"]),
    BeforeValidator(_read_vault_text),
    WithJsonSchema(
        {
            "anyOf": [
                VAULT_TEXT_SCHEMA,
                {
                    "type": "object",
                    "properties": {"__ansible_vault": VAULT_TEXT_SCHEMA},
                    "required": ["__ansible_vault"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class CredentialReference(StrictModel):
    """Where a secret is: exactly one of four places. A BMC's secret is `user:password`.

    `env`: an environment variable. `file`: the first line of a file. `command`: the first line that a program prints
    (argv, no shell). `vault`: an inline value encrypted with Ansible Vault, written as `!vault`.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    env: str = Field(default="", min_length=1)
    file: str = Field(default="", min_length=1)
    command: list[str] = Field(default_factory=list, min_length=1)
    vault: VaultText = ""

    @model_validator(mode="after")
    def _exactly_one(self) -> CredentialReference:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"give exactly one of {', '.join(type(self).model_fields)}")
        return self


class TokenReference(CredentialReference):
    """The token that an agent must present: where it is, or its SHA-256 digest, which is no secret.

    The place itself may hold `sha256:DIGEST` too, so that the controller never holds a token.
    """

    sha256: str = Field(default="", pattern=r"^[0-9a-f]{64}$")


def _list_references(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, dict | TokenReference) else value


TokenReferences = Annotated[
    list[TokenReference],
    Field(max_length=2),
    BeforeValidator(_list_references, json_schema_input_type=TokenReference | list[TokenReference] | None),
]
"""One token, or two, each of which is good."""
