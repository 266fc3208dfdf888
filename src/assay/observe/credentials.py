"""Who we are to a BMC. Inventories name where the secret is; it is read when needed and shown nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from assay.model.errors import Trouble
from assay.model.fleet import Node


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, both kept out of every representation."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def credentials_of(node: Node, root: Path) -> Credentials:
    """Resolve `bmc_credentials` of a node: `{env: NAME}` or `{file: PATH below root}`, holding `user:password`."""
    reference = node.variables.get("bmc_credentials")
    where = f"{node.name} bmc_credentials"
    match reference:
        case {"env": str(name)}:
            text = os.environ.get(name, "")
            source = f"the environment variable {name}"
        case {"file": str(path)}:
            text = _first_line(root / path, where)
            source = str(path)
        case _:
            raise Trouble("no credentials are declared", where=where, fix="name them: {env: NAME} or {file: PATH}")
    return _split(text, source, where)


def _first_line(path: Path, where: str) -> str:
    try:
        with path.open() as lines:
            return lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise Trouble(f"{path} cannot be read: {reason}", where=where) from None


def _split(text: str, source: str, where: str) -> Credentials:
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        state = "is not set" if not text else 'does not hold "user:password"'
        raise Trouble(f"{source} {state}", where=where, fix='put "user:password" there')
    return Credentials(user, password)
