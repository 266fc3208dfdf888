"""Where a secret is found. Files that git keeps hold such references, never the secret."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from assay.model.specs.spec_document import StrictModel


def _read_vault_text(value: Any) -> Any:
    """Return the text of a `!vault` scalar, as our reader and Ansible's JSON give it."""
    return value["__ansible_vault"] if isinstance(value, dict) and list(value) == ["__ansible_vault"] else value


VAULT_TEXT_SCHEMA: dict[str, Any] = {"type": "string", "pattern": r"^\$ANSIBLE_VAULT;"}
"""The text that `ansible-vault encrypt_string` prints after the tag `!vault`."""

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
    """Where a secret is found (of a BMC: `user:password`): exactly one of four places.

    `env`: an environment variable. `file`: the first line of a file. `command`: the first line that a program prints
    (its argv, no shell). `vault`: Ansible's vault, inline, as `!vault`.
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
    """What a node's agent must show: where the token is found, or `sha256`, the digest of it, which is no secret.

    The place may hold `sha256:DIGEST` as well, so that no token is ever on the controller.
    """

    sha256: str = Field(default="", pattern=r"^[0-9a-f]{64}$")
