"""Ports of Ethernet switches are numbered as their faceplates are, whatever their operating system calls them."""

import pytest

from assay.fabric.link_words import find_slowest_rate, is_slower, parse_rate
from assay.fabric.readers.interface_names import InterfaceNumbers
from assay.model.specs.fabric.cable import find_next_slower_gbps, rate_to_gbps, read_mac
from assay.model.specs.fabric.design_parts import parse_port_range

CASES = {
    "Cumulus": ({"swp1s0": 1, "swp1s1": 2, "swp2": 3, "swp33s1": 66}, (), 2),
    "SONiC, eight lanes": ({"Ethernet0": 1, "Ethernet8": 2, "Ethernet504": 64}, (), 0),
    "SONiC, its aliases": ({"Ethernet4": 2, "Ethernet8": 3, "etp1a": 1, "etp2": 3}, ("Ethernet8", "etp2"), 2),
    "SONiC, four lanes": ({"Ethernet4": 2, "Ethernet12": 4, "etp4": 4, "etp2": 2}, ("Ethernet12", "etp4"), 1),
    "EOS, whole": ({"Ethernet1": 1, "Ethernet2": 2, "Ethernet64": 64}, (), 1),
    "EOS, lanes": ({"Ethernet17/1": 33, "Ethernet18/1": 35, "Ethernet18/5": 36}, (), 2),
    "NX-OS": ({"Ethernet1/17": 17, "Ethernet1/18": 18}, (), 1),
    "Junos, from 0": ({"et-0/0/0": 1, "et-0/0/17": 18}, (), 1),
    "SR Linux": ({"ethernet-1/1": 1, "ethernet-1/31": 31}, (), 1),
    "no switch": ({"eth0": 0, "ens1f0np0": 0, "bond0": 0, "swp": 0}, (), 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_name_gives_the_number_on_the_faceplate(case):
    numbers, alias, split = CASES[case]
    names = InterfaceNumbers(numbers, [alias] if alias else [])
    assert {name: names.find(name) for name in numbers} == numbers
    assert names.split == split


def test_rates_of_ethernet_are_gigabits():
    assert (rate_to_gbps("400G"), rate_to_gbps("4xNDR")) == (400, 400)
    assert (find_next_slower_gbps("400G"), find_next_slower_gbps("1G")) == (200, 0)
    assert parse_rate("300G") is None
    assert is_slower("100G", "400G")
    assert not is_slower("400G", "400G")
    assert (find_slowest_rate("100G", "400G"), find_slowest_rate("100G", "4xNDR")) == ("100G", "")


def test_a_range_of_ports_may_have_a_step():
    assert list(parse_port_range("65..71/2")) == [65, 67, 69, 71]
    assert list(parse_port_range("1..3")) == [1, 2, 3]


@pytest.mark.parametrize(
    ("guid", "mac"),
    [
        ("0x0000b8cef6112233", "b8cef6112233"),
        ("0xb8cef60300112233", "b8cef6112233"),
        ("0xbacef6fffe112233", "b8cef6112233"),
        ("0xb83fd20123100000", ""),
    ],
)
def test_a_guid_may_hold_a_mac(guid, mac):
    assert read_mac(guid) == mac
