"""Settings of the BMC are written only where they differ, on the BMC of the lab, and are in force at once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from assay.act.remedies import settings as bmc_settings_update
from assay.act.remedies.settings import BmcSettingsUpdate
from assay.adapters.bmc.accounts import read_accounts
from assay.adapters.bmc.client import BmcClient, accepts_login, open_bmc
from assay.adapters.bmc.settings import change_bmc_settings, compare_bmc_settings, read_own_settings
from assay.lab.faults.injection import inject_fault
from assay.model.errors import AssayError
from assay.model.specs.node.bmc_settings import BmcSpec

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
        ("NetworkProtocol", {"NTP": {"NTPServers": ["c.example", None]}}),
    ]
    assert all(tag for *_, tag in written)
    assert box(rehearsal)["ntp"] == {"enabled": False, "servers": ["c.example"]}
    assert compare_bmc_settings(spec, read_own_settings(bmc)) == []


def test_the_order_of_servers_and_settings_that_are_not_declared_do_not_count(bmc: BmcClient, rehearsal: Any) -> None:
    spoil(rehearsal, power_restore="AlwaysOff", ntp={"enabled": False, "servers": ["a.example", "b.example"]})
    assert compare_bmc_settings(wanted(), read_own_settings(bmc)) == []
    spoil(rehearsal, ntp={"enabled": False, "servers": ["a.example", None, "b.example", ""]})
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


def test_a_bmc_that_forgets_what_it_took_is_an_error_with_both_values(rehearsal: Any, bmc: BmcClient) -> None:
    inject_fault(rehearsal.world, "bmc.ntp", NODE, {"servers": "x.example"})
    with rehearsal.world.change(NODE) as state:
        state["fails"]["settings"] = True
    work = BmcSettingsUpdate(rehearsal.fleet, rehearsal.fleet.nodes[NODE], read_back_s=0.0)
    with pytest.raises(AssayError, match=r"after the change: bmc\.ntp\.servers is x\.example, expected ntp1"):
        work.apply()


@pytest.mark.parametrize("kind", ["failed", "unsupported", "absent"])
def test_what_cannot_be_read_is_never_as_wanted(kind: str) -> None:
    spec = wanted(
        power_restore="AlwaysOn", ntp={"enabled": True, "servers": []}, syslog=[], accounts={"complete": True}
    )
    parts = ("power_restore", "ntp", "syslog", "accounts")
    for tree in ({kind: "no answer"}, {part: {kind: "no answer"} for part in parts}):
        assert [one.seen for one in compare_bmc_settings(spec, tree)] == [f"({kind}: no answer)"] * 5


SECRET = "swordfish-77"
MONITOR = {"role": "ReadOnly", "password": {"env": "MONITOR_PASSWORD"}}


@pytest.fixture
def update(bmc: BmcClient, rehearsal: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the work on a node whose spec declares accounts; the node is put back afterwards."""
    monkeypatch.setenv("MONITOR_PASSWORD", SECRET)
    with rehearsal.world.change(NODE) as state:
        state["accounts"] = {}

    def make(users: Any = MONITOR, *, complete: bool = False, check: bool = False) -> BmcSettingsUpdate:
        users = {"monitor": users} if users is MONITOR else users
        accounts = {"accounts": {"complete": complete, "users": users}}
        spec = rehearsal.fleet.spec_of(NODE).model_copy(update={"bmc": wanted(**accounts)})
        fleet = replace(rehearsal.fleet, node_specs=rehearsal.fleet.node_specs | {spec.name: spec})
        return BmcSettingsUpdate(fleet, fleet.nodes[NODE], 5.0, check)

    return make


def accounts(rehearsal: Any) -> dict[str, Any]:
    return {one["user"]: one for one in rehearsal.world.load(NODE)["accounts"].values()}


def spoil_account(rehearsal: Any, **changed: Any) -> None:
    with rehearsal.world.change(NODE) as state:
        next(one for one in state["accounts"].values() if one["user"] == "monitor").update(changed)


def test_a_missing_account_is_created_and_its_password_opens_it(update: Any, rehearsal: Any) -> None:
    work = update()
    assert [(one.name, one.seen) for one in work.apply()] == [("bmc.accounts.users.monitor", "absent")]
    assert accounts(rehearsal)["monitor"]["role"] == "ReadOnly"
    assert accepts_login(work.fleet, work.node, "monitor", SECRET)
    assert not accepts_login(work.fleet, work.node, "monitor", "another-secret")
    assert work.apply() == []
    assert SECRET not in json.dumps(rehearsal.world.load(NODE))


def test_only_the_properties_of_an_account_that_differ_are_written(update: Any, rehearsal: Any) -> None:
    update().apply()
    digest = accounts(rehearsal)["monitor"]["digest"]
    spoil_account(rehearsal, role="Administrator", locked=True, enabled=False)
    work = update({"monitor": MONITOR | {"locked": False}})
    assert [(one.name.rpartition(".")[2], one.seen) for one in work.apply()] == [
        ("role", "Administrator"),
        ("enabled", "false"),
        ("locked", "true"),
    ]
    after = accounts(rehearsal)["monitor"]
    said = {"user": "monitor", "digest": digest, "role": "ReadOnly"}
    assert after == {**said, "enabled": True, "locked": False, "must_change": False}


def test_a_password_is_only_tried_when_asked_and_then_set(
    update: Any, rehearsal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    update().apply()
    monkeypatch.setenv("MONITOR_PASSWORD", "new-swordfish-78")
    assert update().find_mismatches() == []
    (mismatch,) = update(check=True).apply()
    assert mismatch.name == "bmc.accounts.users.monitor.password"
    assert "swordfish" not in str(mismatch)
    assert update(check=True).find_mismatches() == []


def test_a_password_that_the_bmc_refuses_is_not_printed(
    update: Any, rehearsal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONITOR_PASSWORD", "short1")
    with pytest.raises(AssayError, match="The password is too short") as trouble:
        update().apply()
    assert "short1" not in str(trouble.value)
    assert accounts(rehearsal) == {}


def test_a_password_that_was_taken_and_opens_nothing_is_an_error(update: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmc_settings_update, "accepts_login", lambda *_: False)
    with pytest.raises(AssayError, match="took the password of monitor, but refuses the login with it") as trouble:
        update().apply()
    assert SECRET not in str(trouble.value)


@pytest.mark.parametrize(
    ("account", "said"),
    [
        ({"role": "ReadOnly"}, "the account needs a password"),
        ({"role": "ReadOnly", "password": {"env": "NO_SUCH_VARIABLE"}}, "variable NO_SUCH_VARIABLE gives no password"),
    ],
)
def test_an_account_without_a_password_is_refused_before_anything_is_written(
    update: Any, rehearsal: Any, account: Any, said: str
) -> None:
    with pytest.raises(AssayError, match=said):
        update({"other": MONITOR, "monitor": account}).apply()
    assert accounts(rehearsal) == {}


def test_undeclared_accounts_count_only_where_the_list_is_complete(update: Any, rehearsal: Any) -> None:
    inject_fault(rehearsal.world, "bmc.account", NODE, {"user": "mallory"})
    assert update({}).find_mismatches() == []
    (mismatch,) = update({}, complete=True).apply()
    assert (mismatch.name, mismatch.wanted, mismatch.seen) == ("bmc.accounts.users.mallory", "disabled", "enabled")
    assert accounts(rehearsal)["mallory"]["enabled"] is False
    assert update({}, complete=True).find_mismatches() == []


def test_assay_never_changes_the_account_that_it_logs_in_with(update: Any, bmc: BmcClient, rehearsal: Any) -> None:
    own = next(user for user, one in read_accounts(bmc).items() if one["own"]["value"])
    with pytest.raises(AssayError, match="does not change the account with which it logs in"):
        update({own: {"role": "ReadOnly"}, "monitor": MONITOR}).apply()
    assert accounts(rehearsal) == {}
