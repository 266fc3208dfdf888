"""What dnsmasq and Kea say of a lease."""

from __future__ import annotations

import pytest

from assay.act.boot.reports import read_leases
from assay.model.specs.machines import SeenMachine

SEEN = SeenMachine("10.0.0.7", "02:00:5e:00:21:00")
KEA = {"LEASES4_SIZE": "1", "LEASES4_AT0_ADDRESS": "10.0.0.7", "LEASES4_AT0_HWADDR": "02:00:5e:00:21:00"}


@pytest.mark.parametrize(
    ("words", "environment", "seen"),
    [
        (["add", "02:00:5E:00:21:00", "10.0.0.7", "bmc21"], {}, [SEEN]),
        (["old", "06-02:00:5e:00:21:00", "10.0.0.7"], {}, [SEEN]),
        (["del", "02:00:5e:00:21:00", "10.0.0.7"], {}, []),
        (["init"], {}, []),
        (["leases4_committed"], KEA, [SEEN]),
        (["lease4_renew"], {"LEASE4_ADDRESS": "10.0.0.7", "LEASE4_HWADDR": "02:00:5e:00:21:00"}, [SEEN]),
        (["lease4_expire"], KEA, []),
        (["leases6_committed"], KEA, []),
    ],
)
def test_a_lease_names_a_machine(words: list[str], environment: dict[str, str], seen: list[SeenMachine]) -> None:
    assert read_leases(words, environment) == seen


def test_dnsmasq_tells_the_vendor_class() -> None:
    (seen,) = read_leases(["add", SEEN.bmc_mac, SEEN.address], {"DNSMASQ_VENDOR_CLASS": "iDRAC"})
    assert seen.vendor == "iDRAC"


@pytest.mark.parametrize(
    "words", [[], ["hello"], ["add"], ["add", "not-a-mac", "10.0.0.7"], ["add", SEEN.bmc_mac, "10.0.0"]]
)
def test_other_words_are_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"dnsmasq|MAC|address|Kea"):
        read_leases(words, {})
