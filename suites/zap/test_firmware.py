"""The node runs the bundle's firmware, as read back from the BMC; an update's exit code proves nothing."""

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
    """Compare the firmware of every component except the InfiniBand adapters with the bundle."""
    wrong = drifted(bmc, [component for component in bundle.components if not component.hca])
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("firmware.drift")
def test_hca_firmware_is_the_bundles(bmc, bundle, profile):
    """Compare the adapters' firmware with the bundle; where it is not ours to change, it only has to be readable."""
    wrong = drifted(bmc, [component for component in bundle.components if component.hca])
    assert not wrong or not profile.hca_firmware, "; ".join(wrong)


@pytest.mark.fault("firmware.drift")
def test_no_firmware_waits(bmc):
    """Check that no firmware waits for a reset: any reset would then change the node."""
    waiting = [f"{part} {bmc.firmware_pending[part]}" for part in bmc.firmware_pending]
    assert not waiting, f"at the next reset {', '.join(waiting)} will run"


@pytest.mark.fault("firmware.drift")
def test_parts_of_a_kind_run_one_firmware(bmc):
    """Check that parts of which the BMC says that they are alike run one version, even if no bundle lists them."""
    kinds = {}
    for part in bmc.firmware:
        kinds.setdefault(bmc.firmware_kind[part], set()).add(bmc.firmware[part])
    mixed = [f"{kind}… runs {' and '.join(sorted(found))}" for kind, found in kinds.items() if len(found) > 1]
    assert not mixed, "; ".join(mixed)


@pytest.mark.fault("firmware.unverified")
def test_firmware_is_its_makers(bmc):
    """Find components that could not prove by their certificate (SPDM) whose firmware they run, where the BMC asks."""
    failed = [name for name in bmc.integrity if bmc.integrity[name] != "Success"]
    assert not failed, f"not proved to be its maker's firmware: {', '.join(failed)}"
