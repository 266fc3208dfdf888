"""Settings of the BMC are written only where they differ, on the BMC of the lab, and are in force at once."""

from __future__ import annotations

from typing import Any

import pytest

from assay.actions.settings.bmc_settings_update import BmcSettingsUpdate
from assay.lab.faults.injection import inject_fault
from assay.model.errors import AssayError
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.redfish.bmc_client import BmcClient, open_bmc
from assay.redfish.bmc_settings import change_bmc_settings, compare_bmc_settings, read_own_settings

NODE = "n0003"


def wanted(**settings: Any) -> BmcSpec:
    return BmcSpec.model_validate(settings)


def spoil(rehearsal: Any, **box: Any) -> None:
    with rehearsal.world.change(NODE) as state:
        state["box"] |= box


def box(rehearsal: Any) -> Any:
    return rehearsal.world.load(NODE)["box"]


def changes(bmc: BmcClient, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, Any]]:
    """Return a list that collects what is written from now on: path, body and the ETag that it is bound to."""
    seen: list[tuple[str, Any, Any]] = []
    send = bmc.request

    def record(method: str, path: str, *more: Any, **request: Any) -> Any:
        if method != "get":
            seen.append((path.rpartition("/")[2], request.get("body"), request["headers"].get("If-Match")))
        return send(method, path, *more, **request)

    monkeypatch.setattr(bmc, "request", record)
    return seen


def test_only_what_differs_is_written_and_is_in_force_at_once(
    bmc: BmcClient, rehearsal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(rehearsal, power_restore="AlwaysOff", ntp={"enabled": False, "servers": ["a.example", "b.example"]})
    spec = wanted(power_restore="AlwaysOn", ntp={"enabled": False, "servers": ["c.example"]})
    mismatches = compare_bmc_settings(spec, read_own_settings(bmc))
    assert [(one.name, one.wanted, one.seen) for one in mismatches] == [
        ("bmc.power_restore", "AlwaysOn", "AlwaysOff"),
        ("bmc.ntp.servers", "c.example", "a.example b.example"),
    ]
    written = changes(bmc, monkeypatch)
    change_bmc_settings(bmc, spec, mismatches)
    assert [(where, body) for where, body, _ in written] == [
        ("System_0", {"PowerRestorePolicy": "AlwaysOn"}),
        ("NetworkProtocol", {"NTP": {"NTPServers": ["c.example", None, None]}}),
    ]
    assert all(tag for *_, tag in written)
    assert box(rehearsal)["ntp"] == {"enabled": False, "servers": ["c.example"]}
    assert compare_bmc_settings(spec, read_own_settings(bmc)) == []


def test_the_order_of_servers_and_settings_that_are_not_declared_do_not_count(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, power_restore="AlwaysOff", ntp={"enabled": False, "servers": ["a.example", "b.example"]})
    assert compare_bmc_settings(wanted(), read_own_settings(bmc)) == []
    assert compare_bmc_settings(wanted(ntp={"servers": ["b.example", "a.example"]}), read_own_settings(bmc)) == []


def test_no_server_at_all_can_be_wanted(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, ntp={"enabled": True, "servers": ["a.example"]})
    spec = wanted(ntp={"enabled": False, "servers": []})
    change_bmc_settings(bmc, spec, compare_bmc_settings(spec, read_own_settings(bmc)))
    assert box(rehearsal)["ntp"] == {"enabled": False, "servers": []}


def test_a_property_that_the_bmc_lacks_is_named_and_nothing_else_is_written(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, power_restore="AlwaysOff", lacks=["NTP"])
    spec = wanted(power_restore="AlwaysOn", ntp={"enabled": True})
    mismatches = compare_bmc_settings(spec, read_own_settings(bmc))
    with pytest.raises(AssayError, match=r"Managers/BMC_0/NetworkProtocol has no NTP\.ProtocolEnabled"):
        change_bmc_settings(bmc, spec, mismatches)
    assert box(rehearsal)["power_restore"] == "AlwaysOff"


LOG = {"server": "log.example", "port": 6514, "protocol": "SyslogTLS"}


def subscribe(rehearsal: Any, *destinations: str) -> None:
    with rehearsal.world.change(NODE) as state:
        state["subscriptions"] = {
            str(number): {"destination": one, "context": "", "protocol": "SyslogUDP" if "syslog" in one else "Redfish"}
            for number, one in enumerate(destinations)
        }


def subscribed(rehearsal: Any) -> dict[str, str]:
    return {one["destination"]: one["protocol"] for one in rehearsal.world.load(NODE)["subscriptions"].values()}


def test_missing_syslog_servers_are_added_and_others_removed_but_no_other_subscription(
    bmc: BmcClient, rehearsal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(rehearsal, "https://events.example", "syslog://old.example", "syslog://[fd00::1]:514")
    spec = wanted(syslog=[LOG, {"server": "fd00::1", "port": 514, "protocol": "SyslogUDP"}])
    mismatches = compare_bmc_settings(spec, read_own_settings(bmc))
    assert [(one.name, one.seen) for one in mismatches] == [
        ("bmc.syslog", "[fd00::1]:514/SyslogUDP old.example:514/SyslogUDP")
    ]
    written = changes(bmc, monkeypatch)
    change_bmc_settings(bmc, spec, mismatches)
    assert len(written) == 2
    assert written[1][2], "a subscription is deleted only as it was read"
    assert subscribed(rehearsal) == {
        "https://events.example": "Redfish",
        "syslog://[fd00::1]:514": "SyslogUDP",
        "syslog://log.example:6514": "SyslogTLS",
    }
    assert compare_bmc_settings(spec, read_own_settings(bmc)) == []


def test_a_bmc_that_takes_no_syslog_subscription_keeps_everything(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, power_restore="AlwaysOff", lacks=["Syslog"])
    subscribe(rehearsal, "syslog://old.example")
    spec = wanted(power_restore="AlwaysOn", syslog=[LOG])
    with pytest.raises(AssayError, match=r"EventService/Subscriptions answered 400: The value SyslogTLS of Protocol"):
        change_bmc_settings(bmc, spec, compare_bmc_settings(spec, read_own_settings(bmc)))
    assert subscribed(rehearsal) == {"syslog://old.example": "SyslogUDP"}
    assert box(rehearsal)["power_restore"] == "AlwaysOff"


def test_a_bmc_without_event_service_is_told_so(rehearsal: Any) -> None:
    spoil(rehearsal, lacks=["EventService"])
    with open_bmc(rehearsal.fleet.nodes[NODE], root=rehearsal.root) as session:
        (mismatch,) = compare_bmc_settings(wanted(syslog=[]), read_own_settings(session))
    spoil(rehearsal, lacks=[])
    assert mismatch.seen.startswith("(unsupported: ")
    assert "links to no EventService" in mismatch.seen


def test_a_second_run_changes_nothing(rehearsal: Any, bmc: BmcClient) -> None:
    for fault, how in (("power.restore", {"policy": "AlwaysOn"}), ("bmc.ntp", {"servers": "x.example"})):
        inject_fault(rehearsal.world, fault, NODE, how)
    work = BmcSettingsUpdate(rehearsal.fleet, rehearsal.fleet.nodes[NODE])
    assert {one.name for one in work.apply()} == {"bmc.power_restore", "bmc.ntp.servers"}
    assert work.find_mismatches() == []
    assert work.apply() == []


@pytest.mark.parametrize("kind", ["failed", "unsupported", "absent"])
def test_what_cannot_be_read_is_never_as_wanted(kind: str) -> None:
    spec = wanted(power_restore="AlwaysOn", ntp={"enabled": True, "servers": []}, syslog=[])
    for tree in (
        {kind: "no answer"},
        {"power_restore": {kind: "no answer"}, "ntp": {kind: "no answer"}, "syslog": {kind: "no answer"}},
    ):
        assert [one.seen for one in compare_bmc_settings(spec, tree)] == [f"({kind}: no answer)"] * 4
