"""The shapes of what the verbs that declare the fleet print with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact, shown

if TYPE_CHECKING:
    pass


@fact
class CloudInitAnswer:
    """The documents that cloud-init gets when the node boots."""

    meta_data: str = shown("meta-data")
    """The document meta-data, in YAML."""
    user_data: str = shown("user-data")
    """The document user-data: the node's system as declared."""
    vendor_data: str = shown("vendor-data")
    """The document vendor-data: what assay asks of every node."""
    network_config: str | None = shown("network-config", omit=True, default=None)
    """The document network-config; only with a declared network."""
