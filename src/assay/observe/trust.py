"""Whom we believe to be a node's BMC: the holder of a certificate of one authority, or of one very certificate."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from assay.model.fleet import Node
from assay.observe.wire import pinned, trust


@dataclass(frozen=True)
class Trust:
    """`ca` is a file of authorities; `fingerprint` the SHA-256 of the one certificate that is accepted (64 digits).

    With neither, the system's authorities decide. A pin is checked right after the handshake, before a byte is sent.
    """

    ca: Path | None = None
    fingerprint: str = ""

    @property
    def said(self) -> str:
        """Who decides, in words."""
        if self.fingerprint:
            return "bmc_fingerprint"
        return f"bmc_ca {self.ca.name}" if self.ca else "the system's authorities"

    def context(self) -> ssl.SSLContext:
        """Return the TLS context. Raises OSError where the file of authorities cannot be used."""
        return pinned() if self.fingerprint else trust(self.ca)


def trust_of(node: Node, root: Path) -> Trust:
    """Return whom the inventory trusts to be the BMC of `node`; relative paths start at `root`."""
    if pin := str(node.variables.get("bmc_fingerprint") or ""):
        return Trust(fingerprint=pin.removeprefix("sha256:").replace(":", "").lower())
    ca = node.variables.get("bmc_ca")
    return Trust(ca=root / ca if ca else None)
