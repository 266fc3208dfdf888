"""The lab of four nodes and the small BMC, as fixtures."""

from __future__ import annotations

from tests.support.bmc_rehearsal import authority, ca_file, rehearsal, tiny

__all__ = ["authority", "ca_file", "rehearsal", "tiny"]
