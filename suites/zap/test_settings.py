"""The node starts as the spec says: BIOS attributes, boot order, secure boot."""

from fnmatch import fnmatchcase

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_bios_is_the_specs(bmc, spec):
    """Compare every BIOS attribute that the spec names."""
    assert len(bmc.bios), "the BMC shows no BIOS attribute"
    wrong = [
        f"{name} is {bmc.bios[name]}, expected {value} ({value.source})"
        for name, value in spec.bios.items()
        if not _is_same(bmc.bios[name], value)
    ]
    assert not wrong, "; ".join(wrong)


def _is_same(seen, wanted):
    """Compare an attribute, which may be a text, a number or a boolean, with the text of the spec."""
    return str(seen).lower() == wanted.lower() if isinstance(seen, bool) else str(seen) == wanted


@pytest.mark.fault("host.config.drift")
def test_no_bios_setting_waits(bmc):
    """Check that no setting waits for a reset: any reset would then change the node."""
    waiting = [f"{name} becomes {bmc.bios_pending[name]}" for name in bmc.bios_pending]
    assert not waiting, f"at the next reset {', '.join(waiting)}"


@pytest.mark.fault("host.config.drift")
def test_boot_mode(bmc, spec, measure):
    """Compare the boot mode with the spec."""
    measure("boot_mode", bmc.boot.mode, equals=spec.boot.mode)


@pytest.mark.fault("host.config.drift")
def test_boot_order(bmc, spec):
    """Compare the first boot entry with the one that the spec wants first."""
    first = bmc.boot.order[0]
    assert spec.boot.first is None or fnmatchcase(first, spec.boot.first), (
        f"boots {first} first, expected {spec.boot.first}"
    )


@pytest.mark.fault("host.config.drift")
def test_no_boot_override_stays(bmc):
    """Check that no boot override outlives the next boot."""
    assert bmc.boot.override != "Continuous", f"every boot goes to {bmc.boot.override_target}"


@pytest.mark.fault("host.config.drift")
def test_secure_boot(bmc, spec):
    """Compare secure boot with the spec, if the spec names it."""
    boot, wanted = bmc.boot, spec.boot.secure
    assert wanted is None or boot.secure == wanted, f"secure boot is {'on' if boot.secure else 'off'}"
