"""The lab of four nodes and the small BMC, as fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from assay.adapters.bmc.client import BmcClient, open_bmc
from tests.support.bmc_rehearsal import authority, ca_file, rehearsal, tiny

__all__ = ["authority", "ca_file", "rehearsal", "tiny"]

NODE = "n0003"


@pytest.fixture
def bmc(rehearsal: Any) -> Iterator[BmcClient]:
    """Yield a session with the BMC of a node that is put back afterwards."""
    before = rehearsal.world.load(NODE)
    with open_bmc(rehearsal.fleet.nodes[NODE], root=rehearsal.root) as session:
        yield session
    with rehearsal.world.change(NODE) as state:
        state.clear()
        state.update(before)
