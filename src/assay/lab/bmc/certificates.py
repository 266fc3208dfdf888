"""The certificates of the lab's BMCs: one of the lab's own CA for all, and another for each machine that was replaced.

No authority vouches for the latter. As with a real machine, its BMC answers only who pins it: somebody writes its
`bmc_fingerprint` into the inventory.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import trustme
import yaml

from assay.lab.world import LabWorld

NAMES = ("127.0.0.1", "localhost")
OWN_CERTIFICATE = "bmc.pem"
"""The file of a replaced machine's key and certificate, in the node's folder."""


def make_authority(authority: Path) -> trustme.LeafCert:
    """Make a CA, write its certificate, which clients must trust, to `authority` (PEM); return the BMCs' certificate.

    Each start makes a new CA. No private key of it stays on disk longer than loading it takes.
    """
    ca, scratch = trustme.CA(organization_name="assay lab"), authority.with_name(f".{authority.name}.new")
    ca.cert_pem.write_to_path(scratch)
    scratch.replace(authority)
    return ca.issue_cert(*NAMES)


def make_bmc_context(world: LabWorld, node: str, shared: trustme.LeafCert) -> ssl.SSLContext:
    """Return the TLS context of a node's BMC. Each connection gets the certificate of the machine that is there now."""
    context, own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), world.folder(node) / OWN_CERTIFICATE
    shared.configure_cert(context)

    def choose(connection: Any, *_: object) -> None:
        if own.exists():
            other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            other.load_cert_chain(own)
            connection.context = other

    context.sni_callback = choose  # it is called without a server name, too
    return context


def renew_certificate(world: LabWorld, node: str) -> None:
    """Give the BMC of another machine a certificate of its own, which only the inventory itself can trust."""
    own, overlay = world.folder(node) / OWN_CERTIFICATE, world.home / "inventory.yml"
    own.touch(mode=0o600)
    trustme.CA(organization_name="a vendor").issue_cert(*NAMES).private_key_and_cert_chain_pem.write_to_path(own)
    if overlay.exists():
        inventory, scratch = yaml.safe_load(overlay.read_text()), overlay.with_name(f".{overlay.name}")
        host = inventory["all"]["hosts"][node]
        host.pop("bmc_fingerprint", None)
        host |= {"bmc_ca": "", "bmc_own_certificate": True}
        scratch.write_text(yaml.safe_dump(inventory))
        scratch.replace(overlay)
