"""The verification of idle nodes reaches every GPU: also one on a node that customers use all the time."""

import pytest

pytestmark = pytest.mark.phase("idle")


@pytest.mark.fault("gpu.unverified")
def test_gpu_was_verified_lately(gpu, node, limits, measure):
    """Compare the time since each part of the verification covered this serial number with its limit; count units."""
    for part in node.coverage[gpu.slot].parts:
        seen = node.coverage[gpu.slot].parts[part]
        if part == "battery":
            measure("battery_units_in_all", seen.units, unit="count")
        never = "" if seen.seen else "never, since the node came into service"
        measure(f"{part}_age", seen.age_hours, at_most=limits.verification_age, unit="h", place=never)
