"""The certificates that a node needs to trust assay's server and the cluster that it joins."""

from __future__ import annotations

import re
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.specs.provisioning_spec import Provisioning

CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\n?")


def read_authorities(root: Path, provisioning: Provisioning) -> dict[str, str]:
    """Return the certificates (PEM) of each authority that a provisioning names, by the name of its file.

    Anything else in a file stays out: nodes must not get a key that stands beside a certificate. Raises AssayError for
    a file that cannot be read, or that has no certificate.
    """
    kubernetes = provisioning.joins.kubernetes
    names = {provisioning.ca_file, kubernetes.ca_file if kubernetes else ""} - {""}
    return {name: _read_certificates(root / name, provisioning.name) for name in sorted(names)}


def _read_certificates(path: Path, provisioning: str) -> str:
    where, fix = f"provisioning {provisioning}", f"put the authority's certificate (PEM) into {path}"
    try:
        found = CERTIFICATE.findall(path.read_text("ascii", errors="replace").replace("\r\n", "\n"))
    except OSError as error:
        raise AssayError(f"{path} cannot be read: {error.strerror}", where=where, fix=fix) from None
    if not found:
        raise AssayError(f"{path} has no certificate", where=where, fix=fix)
    return "".join(f"{one.rstrip()}\n" for one in found)
