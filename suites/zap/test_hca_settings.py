"""HCAs and NICs have the firmware settings of the spec, now and after the next boot."""

import re

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_hca_settings(node, hca, spec):
    """Compare the firmware settings of the HCA with the spec, now and after the next boot."""
    assert len(node.host), "the probe shows nothing of the host"
    wanted = {**spec.hca_settings.hcas, **spec.hca_settings.by_name.get(hca.declared.name, {})}
    _compare(wanted, lambda name: node.adapter_settings[hca.declared.pci.lower()][name])


@pytest.mark.fault("host.config.drift")
def test_nic_settings(node, nic, spec):
    """Compare the firmware settings of the NIC with the spec, now and after the next boot."""
    assert len(node.host), "the probe shows nothing of the host"
    wanted = {**spec.hca_settings.nics, **spec.hca_settings.by_name.get(nic.declared.name, {})}
    _compare(wanted, lambda name: node.adapter_settings[nic.declared.name][name])


def _compare(wanted, read):
    wrong = []
    for name, value in wanted.items():
        setting = read(name)
        for seen, when in ((setting.current, ""), (setting.next_boot, " from the next boot on")):
            if not _is_printed_as(value, seen):
                wrong.append(f"{name} is {seen}{when}, expected {value}")
    assert not wrong, "; ".join(wrong)


def _is_printed_as(value, seen):
    """Say whether mstconfig prints the value like this: by its name, its number, or both (`ETH(2)`)."""
    names = {part.lower() for part in (seen, *re.split(r"[()]", seen)) if part}
    return str(value).lower() in names or (isinstance(value, bool) and str(int(value)) in names)
