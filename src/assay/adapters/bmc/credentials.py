"""Reads the user and password for a BMC. The inventory names the place of the secret; it is shown nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from assay.declare.secret_lookup import describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.node import Node

CREDENTIALS_FIX = "name them: {env: NAME}, {file: PATH}, {command: [PROGRAM, …]} or {vault: !vault …}"


@dataclass(frozen=True, slots=True)
class UserPassword:
    """A user and a password; neither appears in `repr`."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def read_bmc_credentials(node: Node, root: Path) -> UserPassword:
    """Return the credentials that `bmc_credentials` of a node refers to.

    Raises AssayError where none are declared, or where the place does not hold `user:password`.
    """
    where = f"{node.name} bmc_credentials"
    reference = node.settings.bmc_credentials
    if reference is None:
        raise AssayError("no credentials are declared", where=where, fix=CREDENTIALS_FIX)
    try:
        return parse_user_password(read_secret(reference, root), describe_reference(reference))
    except AssayError as error:
        raise AssayError(error.what, where=where, fix=error.fix) from None


def parse_user_password(text: str, source: str) -> UserPassword:
    """Split `user:password`. Raises AssayError, which names `source`, where the text has another form."""
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        state = 'does not hold "user:password"' if text else "is not set" if "variable" in source else "gives nothing"
        raise AssayError(f"{source} {state}", fix='put "user:password" there')
    return UserPassword(user, password)
