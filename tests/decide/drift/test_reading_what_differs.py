"""What differs, as read from the reasons of the checks that ship and of `measure`."""

from __future__ import annotations

import pytest

from assay.decide.drift.differences import read_differences

CHECK = "suites/zap/test_settings.py::test_secure_boot"
CUT_SHORT = "BIOS 2.6, expected 2.7 (f/h.yaml:9); HCA_6 28.4…"


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("driver 550.54, expected 570.17 (s/n.yaml:9)", [("driver", "570.17", "550.54", "s/n.yaml:9")]),
        ("SRIOV is Disabled, expected Enabled (s/n.yaml:7)", [("SRIOV", "Enabled", "Disabled", "s/n.yaml:7")]),
        ("mtu 1500 B, expected 9000", [("mtu", "9000", "1500 B", "")]),
        ("iommu DMA of gpu0, expected identity (s:7)", [("iommu", "identity", "DMA of gpu0", "s:7")]),
        (
            "BIOS 2.6.9, expected 2.7.3 (f/h.yaml:9); HCA_6 28.41.1000, expected 28.43.2026 (f/h.yaml:49)",
            [("BIOS", "2.7.3", "2.6.9", "f/h.yaml:9"), ("HCA_6", "28.43.2026", "28.41.1000", "f/h.yaml:49")],
        ),
        (
            "not loaded: nvidia_peermem (s/n.yaml:20), ib_umad (s/n.yaml:21)",
            [
                ("nvidia_peermem", "nvidia_peermem", "not loaded", "s/n.yaml:20"),
                ("ib_umad", "ib_umad", "not loaded", "s/n.yaml:21"),
            ],
        ),
        (
            "bmc.syslog is a:5/Syslog b:1/Syslog, expected none; bmc.accounts.users.x is absent, expected R (s:5)",
            [
                ("bmc.syslog", "none", "a:5/Syslog b:1/Syslog", ""),
                ("bmc.accounts.users.x", "R", "absent", "s:5"),
            ],
        ),
        ("secure boot is on", [("secure boot", "", "secure boot is on", "")]),
        (CUT_SHORT, [("secure boot", "", CUT_SHORT, "")]),
    ],
)  # fmt: skip
def test_a_reason_names_what_is_wanted_and_seen(reason, found):
    assert [tuple(one) for one in read_differences(CHECK, reason)] == found
