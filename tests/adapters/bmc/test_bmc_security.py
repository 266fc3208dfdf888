"""What a BMC leaves open is read without a login that could lock an account: IPMI, passwords, certificate, firmware."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.accounts import FACTORY_LOGINS
from assay.adapters.bmc.client import BmcClient
from assay.adapters.bmc.session import UserPassword
from assay.adapters.bmc.settings import change_bmc_settings, compare_bmc_settings, read_own_settings
from assay.lab.faults.injection import inject_fault
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.observe.evidence_collector import read_bmc_channel

NODE = "n0003"
NO_IPMI = BmcSpec(ipmi_lan=False)


def plant(rehearsal: Any, fault: str, **arguments: Any) -> None:
    inject_fault(rehearsal.world, fault, NODE, {name: str(text) for name, text in arguments.items()})


def test_ipmi_over_lan_is_switched_off_and_on_as_declared(bmc: BmcClient, rehearsal: Any) -> None:
    assert compare_bmc_settings(NO_IPMI, read_own_settings(bmc)) == []
    plant(rehearsal, "bmc.ipmi")
    mismatches = compare_bmc_settings(NO_IPMI, read_own_settings(bmc))
    assert [(one.name, one.wanted, one.seen) for one in mismatches] == [("bmc.ipmi_lan", "false", "true")]
    change_bmc_settings(bmc, NO_IPMI, mismatches)
    assert rehearsal.world.load(NODE)["box"]["ipmi"] is False
    assert compare_bmc_settings(NO_IPMI, read_own_settings(bmc)) == []


def test_a_bmc_that_knows_no_ipmi_has_it_off_and_cannot_have_it_on(bmc: BmcClient, rehearsal: Any) -> None:
    plant(rehearsal, "bmc.lacks", name="IPMI")
    tree = read_own_settings(bmc)
    assert "unsupported" in tree["ipmi_lan"]
    assert compare_bmc_settings(NO_IPMI, tree) == []
    (mismatch,) = compare_bmc_settings(BmcSpec(ipmi_lan=True), tree)
    assert mismatch.is_unread


def test_an_account_that_must_change_its_password_still_has_the_first_one(bmc: BmcClient, rehearsal: Any) -> None:
    plant(rehearsal, "bmc.account", user="monitor")
    assert read_own_settings(bmc)["factory_passwords"] == {"value": []}
    plant(rehearsal, "bmc.first-password", user="monitor")
    assert read_own_settings(bmc)["factory_passwords"] == {"value": ["monitor"]}
    with rehearsal.world.change(NODE) as state:
        for account in state["accounts"].values():
            account["enabled"] = account["user"] != "monitor"
    assert read_own_settings(bmc)["factory_passwords"] == {"value": []}


@pytest.mark.parametrize(("user", "password"), sorted(FACTORY_LOGINS))
def test_a_login_of_the_manual_is_known_by_comparison_alone(bmc: BmcClient, user: str, password: str) -> None:
    own, bmc._credentials = bmc._credentials, UserPassword(user, password)
    assert bmc.is_own_login(user, FACTORY_LOGINS)
    assert not bmc.is_own_login("somebody", FACTORY_LOGINS)
    bmc._credentials = own
    assert not bmc.is_own_login(own.user, FACTORY_LOGINS)


def test_the_certificate_and_the_makers_of_firmware_are_read(bmc: BmcClient, rehearsal: Any) -> None:
    tree = bmc.read_channel(60)
    assert tree["certificate"]["tls"]["value"] in ("TLSv1.2", "TLSv1.3")
    assert tree["certificate"]["known_by"]["value"].startswith("bmc_ca ")
    late = bmc.read_channel(60, now=lambda: datetime(9000, 1, 1, tzinfo=UTC))
    assert late["certificate"]["days_left"]["value"] < 0 < tree["certificate"]["days_left"]["value"]
    assert set(map(json.dumps, tree["integrity"].values())) == {'{"value": "Success"}'}
    plant(rehearsal, "firmware.unverified", component="BIOS")
    after = bmc.read_channel(60)["integrity"]
    assert [name for name in after if after[name] != {"value": "Success"}] == ["BIOS"]


def test_another_certificate_is_told_and_no_login_is_sent(tiny: Any) -> None:
    seen = read_bmc_channel(tiny.node(bmc_fingerprint="sha256:" + "0a" * 32), Path(), 60)
    assert seen["failed"].startswith("its certificate is not")
