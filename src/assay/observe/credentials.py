"""Who we are to a BMC. Inventories name where the secret is; it is read when needed and shown nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from assay.model.credentials import Credentials as Reference
from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.observe.references import called, secret

FIX = "name them: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or {vault: !vault …}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, both kept out of every representation."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def credentials_of(node: Node, root: Path) -> Credentials:
    """Return what `bmc_credentials` of a node lead to, which must hold `user:password`. Raises Trouble."""
    where = f"{node.name} bmc_credentials"
    reference = reference_of(node)
    if reference is None:
        raise Trouble("no credentials are declared", where=where, fix=FIX)
    try:
        return split(secret(reference, root), called(reference))
    except Trouble as trouble:
        raise Trouble(trouble.what, where=where, fix=trouble.fix) from None


def reference_of(node: Node) -> Reference | None:
    """Return where the credentials of a node's BMC are, None where nobody says it in a way that can be followed."""
    try:
        return Reference.model_validate(node.variables.get("bmc_credentials"))
    except ValidationError:
        return None


def split(text: str, source: str) -> Credentials:
    """Return the user and the password of a text, which `source` names. Raises Trouble."""
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        state = 'does not hold "user:password"' if text else "is not set" if "variable" in source else "gives nothing"
        raise Trouble(f"{source} {state}", fix='put "user:password" there')
    return Credentials(user, password)
