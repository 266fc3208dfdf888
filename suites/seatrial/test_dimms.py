"""Every memory module is present, has its size, and runs at its speed."""

import pytest

pytestmark = [pytest.mark.phase("seatrial"), pytest.mark.passive]


@pytest.mark.phase("seatrial", "production")
@pytest.mark.fault("host.memory.missing")
def test_dimm_count(node, spec, measure):
    """Count the memory modules that the firmware found."""
    wanted = spec.host.dimms
    measure("dimms", len(node.memory.firmware.dimms), equals=wanted and wanted.count, unit="count")


@pytest.mark.fault("host.memory.missing")
def test_dimm_size(node, spec, measure):
    """Compare the size of each memory module with the spec."""
    dimms, wanted = node.memory.firmware.dimms, spec.host.dimms
    for slot in dimms:
        gib = dimms[slot].size_bytes / 2**30
        measure("dimm_size", gib, equals=wanted and wanted.size_gib, unit="GiB", place=f"in {slot}")


@pytest.mark.fault("host.config.drift")
def test_dimm_speed(node, spec, measure):
    """Compare the speed of each memory module with the spec: one slow module slows its socket."""
    dimms, wanted = node.memory.firmware.dimms, spec.host.dimms
    for slot in dimms:
        measure("dimm_speed", dimms[slot].configured_mts, equals=wanted and wanted.speed_mts, place=f"in {slot}")
