"""The lab's own certificate authority: one per lab, and one leaf that all its BMCs show."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

NAMES = ("127.0.0.1", "localhost")


def tls_context(authority: Path) -> ssl.SSLContext:
    """Return the servers' TLS context; what clients must trust is written to `authority`, as PEM.

    The authority lives as long as the process: a new one comes with each start, and no private key is ever on disk
    for longer than it takes to load it.
    """
    ca = trustme.CA(organization_name="assay lab")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*NAMES).configure_cert(context)
    scratch = authority.with_name(f".{authority.name}.new")
    ca.cert_pem.write_to_path(scratch)
    scratch.replace(authority)
    return context
