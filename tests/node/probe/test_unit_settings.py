"""The probe reads the settings of units as systemctl shows them, and says why it cannot."""

from __future__ import annotations

from assay.node.probe.named_settings import parse_unit_settings

SHOWN = """\
LimitMEMLOCK=infinity
TimeoutStopUSec=1min 30s
LoadState=loaded

LimitMEMLOCK=8388608
LoadState=not-found
"""
WANTED = {"containerd.service": ["LimitMEMLOCK", "TimeoutStopSec", "Nonsense"], "slurmd.service": ["LimitMEMLOCK"]}


def test_each_setting_has_its_value_or_a_reason():
    assert parse_unit_settings(SHOWN, WANTED) == {
        "containerd.service": {
            "LimitMEMLOCK": {"value": "infinity"},
            "TimeoutStopSec": {"value": "1min 30s"},
            "Nonsense": {"unsupported": "systemd shows no Nonsense of containerd.service"},
        },
        "slurmd.service": {"absent": "slurmd.service is not loaded: not-found"},
    }


def test_another_answer_is_a_failed_reading():
    for text in ("", "System has not been booted with systemd as init system (PID 1). Can't operate.\n", SHOWN[:30]):
        assert list(parse_unit_settings(text, WANTED)) == ["failed"]
