"""Settings are read back with patience for what starts, and without it for what will not change by itself."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from assay.act.remedies import settings
from assay.act.remedies.settings import HostSettingsReadBack
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.specs.node.declared_settings import SettingMismatch
from assay.model.specs.node.node_spec import HostSpec
from tests.support.places import ROOT

STARTING = SettingMismatch("host.services.chrony", "active", "activating")
SYSCTL = SettingMismatch("host.sysctls.vm.swappiness", "10", "60")
KERNEL = SettingMismatch("host.kernel", "6.8", "6.5")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Callable[..., HostSettingsReadBack]:
    """Return what makes the work on a node whose readings come in this order; the last one stays."""

    def make(
        *readings: list[SettingMismatch], root: Literal["disk", "memory"] = "disk", managed: bool = True
    ) -> HostSettingsReadBack:
        left = list(readings)
        base, profile = load_fleet(ROOT).node_specs["hgx-h100"], SimpleNamespace(host_settings=managed)
        spec = base.model_copy(update={"host": HostSpec(root=root)})
        fleet: Any = SimpleNamespace(spec_of=lambda _: spec, profile_of=lambda _: profile)
        node: Any = SimpleNamespace(name="n1")
        monkeypatch.setattr(settings, "run_remote_probe", lambda *_: {"probe": {}})
        monkeypatch.setattr(
            settings.settings_comparison,
            "find_host_mismatches",
            lambda *_: left.pop(0) if len(left) > 1 else left[0],
        )
        monkeypatch.setattr(settings.time, "sleep", lambda _: None)
        return HostSettingsReadBack(fleet, node, settle_s=0.2)

    return make


def test_a_service_that_starts_is_waited_for(work: Callable[..., HostSettingsReadBack]):
    assert work([STARTING], [STARTING], []).settle() == []


def test_a_service_that_never_starts_is_told(work: Callable[..., HostSettingsReadBack]):
    assert work([STARTING]).settle() == [STARTING]


def test_nothing_waits_for_a_value_that_stays(work: Callable[..., HostSettingsReadBack]):
    assert work([SYSCTL], []).settle() == [SYSCTL]
    assert work([SYSCTL], []).settle("") == [], "after a boot, everything may be late"


def test_only_a_disk_makes_a_restart_worthwhile(work: Callable[..., HostSettingsReadBack]):
    assert work([]).is_restart_needed([KERNEL])
    assert not work([]).is_restart_needed([SYSCTL])
    image = work([], root="memory")
    assert not image.is_restart_needed([KERNEL])
    with pytest.raises(AssayError, match=r"host\.kernel is 6\.5, expected 6\.8") as trouble:
        image.require_no_mismatch([KERNEL])
    assert "image" in trouble.value.fix


def test_a_profile_may_leave_the_operating_system_alone(work: Callable[..., HostSettingsReadBack]):
    assert work([KERNEL], managed=False).find_mismatches() == []
