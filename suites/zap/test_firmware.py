"""The node carries the bundle: versions are read back from the BMC, never taken from an update's exit code."""

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


def drifted(bmc, components):
    """Return a line for every inventory id that reads another version than its component's."""
    return [
        f"{part} {bmc.firmware[part]}, expected {component.version} ({component.version.source})"
        for component in components
        for part in component.inventory
        if bmc.firmware[part] != component.version
    ]


@pytest.mark.fault("firmware.drift")
def test_firmware_is_the_bundles(bmc, bundle):
    """Compare every component but the InfiniBand adapters with the bundle."""
    wrong = drifted(bmc, [component for component in bundle.components if not component.hca])
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("firmware.drift")
def test_hca_firmware_is_the_bundles(bmc, bundle, profile):
    """Compare the adapters with the bundle where their firmware is ours; elsewhere it only has to be known."""
    wrong = drifted(bmc, [component for component in bundle.components if component.hca])
    assert not wrong or not profile.hca_firmware, "; ".join(wrong)


@pytest.mark.fault("firmware.drift")
def test_no_firmware_waits(bmc):
    """Refuse firmware that waits for a reset: the next one, whoever asks for it, would change the node."""
    waiting = [f"{part} {bmc.firmware_pending[part]}" for part in bmc.firmware_pending]
    assert not waiting, f"at the next reset {', '.join(waiting)} will run"


@pytest.mark.fault("firmware.drift")
def test_parts_of_a_kind_run_one_firmware(bmc):
    """Find one version on all parts whose ids differ in nothing but their number, also those of no bundle."""
    kinds = {}
    for part in bmc.firmware:
        kinds.setdefault(part.rstrip("0123456789"), set()).add(bmc.firmware[part])
    mixed = [f"{kind}… runs {' and '.join(sorted(found))}" for kind, found in kinds.items() if len(found) > 1]
    assert not mixed, "; ".join(mixed)
