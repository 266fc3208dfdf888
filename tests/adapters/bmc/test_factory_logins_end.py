"""A BMC's factory login is changed once: on the BMCs of the lab, over HTTPS, with every way in which it goes wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from typer.testing import CliRunner

from assay.act.ingest import bmc_takeovers
from assay.act.ingest.bmc_takeovers import list_open_takeovers, take_over
from assay.act.loop.context import ControllerContext
from assay.adapters.bmc.accounts import disable_account, give_account
from assay.adapters.bmc.client import accepts_login, open_bmc
from assay.adapters.bmc.errors import error_for_response
from assay.adapters.bmc.scan import ask_service_root
from assay.cli.app import app
from assay.lab.bmc.authentication import digest_password
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.credential_reference import CredentialReference
from assay.model.text.safe_text import register_secret
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

NODE = "n0003"
NEW = "canary-of-the-fleet-4e1f"
OTHER_CERTIFICATE = f"sha256:{'0' * 64}"


@dataclass
class Rack:
    """One new node: the lab's login is that of the factory, the inventory declares another."""

    rehearsal: Any
    home: Path
    ledger: Ledger

    @property
    def factory(self) -> tuple[str, str]:
        user, _, password = (self.rehearsal.world.home / "credentials").read_text().strip().partition(":")
        return user, password

    def fleet(self, **settings: Any) -> Fleet:
        fleet: Fleet = self.rehearsal.fleet
        (delivery,) = fleet.deliveries.values()
        node = fleet.nodes[NODE]
        machine = delivery.machines[0].model_copy(update={"serial_number": node.serial, "name": NODE})
        factory = CredentialReference(file=str(self.rehearsal.world.home / "credentials"))
        ours = delivery.model_copy(update={"factory_credentials": factory, "machines": [machine]})
        declared = {"bmc_credentials": CredentialReference(env="NEW_BMC"), **settings}
        new = replace(node, settings=node.settings.model_copy(update=declared))
        return replace(fleet, nodes={**fleet.nodes, NODE: new}, deliveries={ours.name: ours})

    def context(self, fleet: Fleet) -> ControllerContext:
        evidence = EvidenceStore(self.home / "evidence")
        return ControllerContext(fleet, self.ledger, evidence, SystemClock(), self.home, self.home / "reports")

    def take_over(self, **settings: Any) -> Any:
        fleet = self.fleet(**settings)
        return take_over(self.context(fleet), fleet.nodes[NODE])

    def accepts(self, user: str, password: str) -> bool:
        fleet = self.fleet()
        return accepts_login(fleet, fleet.nodes[NODE], user, password)

    def steps(self) -> list[str]:
        return [entry.body["step"] for entry in self.ledger.entries(NODE, ["bmc.takeover"])]

    def use_new_user(self, monkeypatch: pytest.MonkeyPatch, user: str) -> str:
        user = self.factory[0] if user == "the same" else user
        monkeypatch.setenv("NEW_BMC", f"{user}:{NEW}")
        return user

    def let_password_expire(self) -> None:
        """Let the BMC answer its factory login only with the wish for a new password."""
        user, password = self.factory
        entry = {"user": user, "digest": digest_password("1", password), "enabled": True, "locked": False}
        with self.rehearsal.world.change(NODE) as state:
            state["accounts"]["1"] = entry | {"role": "Administrator", "must_change": True}

    def put_back(self, before: Any) -> None:
        """Let the lab's own login work again, also in the BMC's memory."""
        user, password = self.factory
        entry = {"user": user, "digest": digest_password("1", password), "enabled": True, "locked": False}
        first = {"1": entry | {"role": "Administrator", "must_change": False}}
        for accounts in (before["accounts"] | first, before["accounts"]):
            with self.rehearsal.world.change(NODE) as state:
                state.clear()
                state.update(before | {"accounts": accounts})
            assert self.accepts(user, password)


@pytest.fixture
def rack(rehearsal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rack]:
    monkeypatch.setenv("NEW_BMC", f"fleet:{NEW}")
    monkeypatch.setattr(bmc_takeovers, "PROOF_S", 3.0)
    monkeypatch.setattr(bmc_takeovers, "WORK_S", 8.0)
    before = rehearsal.world.load(NODE)
    found = Rack(rehearsal, tmp_path, Ledger.open(tmp_path / "ledger.sqlite"))
    yield found
    kept = json.dumps([entry.body for entry in found.ledger.entries()])
    assert NEW not in kept
    assert found.factory[1] not in kept
    found.ledger.close()
    found.put_back(before)


@pytest.mark.parametrize("user", ["fleet", "the same"])
def test_the_factory_login_ends_and_the_new_one_works(rack: Rack, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    user = rack.use_new_user(monkeypatch, user)
    fleet = rack.fleet()
    assert list_open_takeovers(fleet, rack.ledger) == [NODE]
    done = rack.take_over()
    assert (done.account, done.was_changed) == (user, True)
    assert (rack.accepts(user, NEW), rack.accepts(*rack.factory)) == (True, False)
    assert rack.steps() == ["started", "done"]
    assert list_open_takeovers(fleet, rack.ledger) == []


def test_nothing_is_done_twice(rack: Rack) -> None:
    rack.take_over()
    before = rack.rehearsal.world.load(NODE)["accounts"]
    assert not rack.take_over().was_changed
    assert rack.rehearsal.world.load(NODE)["accounts"] == before
    assert rack.steps() == ["started", "done"]


def test_what_a_person_has_changed_by_hand_is_noted(rack: Rack) -> None:
    user, _ = rack.factory
    entry = {"user": user, "digest": "", "enabled": False, "locked": False, "role": "Administrator"}
    entry |= {"must_change": False}  # a BMC keeps what nobody has set otherwise
    ours = {**entry, "user": "fleet", "enabled": True, "digest": digest_password("2", NEW)}
    with rack.rehearsal.world.change(NODE) as state:
        state["accounts"] = {"1": entry, "2": ours}
    assert not rack.take_over().was_changed
    assert rack.steps() == ["done"]


@pytest.mark.parametrize("user", ["fleet", "the same"])
def test_a_bmc_that_falls_silent_in_the_middle_is_finished_later(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    user, give = rack.use_new_user(monkeypatch, user), bmc_takeovers.give_account

    def give_and_fall_silent(*words: Any) -> None:
        give(*words)
        with rack.rehearsal.world.change(NODE) as state:
            state["fails"]["bmc_silent"] = True

    monkeypatch.setattr(bmc_takeovers, "WORK_S", 2.0)
    monkeypatch.setattr(bmc_takeovers, "PROOF_S", 0.1)
    monkeypatch.setattr(bmc_takeovers, "give_account", give_and_fall_silent)
    with pytest.raises(AssayError, match="no answer within") as trouble:
        rack.take_over()
    assert "run it again" in trouble.value.fix
    monkeypatch.setattr(bmc_takeovers, "give_account", give)
    monkeypatch.setattr(bmc_takeovers, "WORK_S", 8.0)
    with rack.rehearsal.world.change(NODE) as state:
        state["fails"]["bmc_silent"] = False
    rack.take_over()
    assert (rack.accepts(user, NEW), rack.accepts(*rack.factory)) == (True, False)
    assert rack.steps()[:2] == ["started", "failed"]
    assert rack.steps()[-1] == "done"


@pytest.mark.parametrize("user", ["fleet", "the same"])
def test_a_bmc_that_wants_a_new_password_at_its_first_login_gets_it(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    user = rack.use_new_user(monkeypatch, user)
    rack.let_password_expire()
    assert rack.take_over().was_changed
    assert (rack.accepts(user, NEW), rack.accepts(*rack.factory)) == (True, False)
    assert user == rack.factory[0] or not rack.accepts(rack.factory[0], NEW)
    assert rack.steps() == ["started", "done"]


def test_a_run_that_ended_after_the_first_new_password_is_finished(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> None:
        raise AssayError("killed")

    give = bmc_takeovers.give_account
    rack.let_password_expire()
    for name in ("give_account", "disable_account"):
        kept = getattr(bmc_takeovers, name)
        monkeypatch.setattr(bmc_takeovers, name, die)
        with pytest.raises(AssayError, match="killed"):
            rack.take_over()
        monkeypatch.setattr(bmc_takeovers, name, kept)
    assert bmc_takeovers.give_account is give
    assert rack.accepts("fleet", NEW)
    assert rack.accepts(rack.factory[0], NEW), "the factory account is still open"
    assert rack.take_over().was_changed
    assert (rack.accepts("fleet", NEW), rack.accepts(rack.factory[0], NEW)) == (True, False)
    assert rack.steps()[-1] == "done"


def test_a_first_password_that_the_bmc_does_not_take_changes_nothing(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEW_BMC", "fleet:short1")
    rack.let_password_expire()
    with pytest.raises(AssayError, match="The password is too short") as trouble:
        rack.take_over()
    assert "short1" not in str(trouble.value)
    monkeypatch.setenv("NEW_BMC", f"fleet:{NEW}")
    assert rack.take_over().was_changed


def test_a_password_that_the_bmc_does_not_take_changes_nothing(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_BMC", "fleet:short1")
    with pytest.raises(AssayError, match="The password is too short") as trouble:
        rack.take_over()
    assert "short1" not in str(trouble.value)
    assert rack.accepts(*rack.factory)
    assert rack.steps() == ["started", "failed"]
    assert list_open_takeovers(rack.fleet(), rack.ledger) == [NODE]


def test_a_bmc_that_only_says_that_it_disabled_its_factory_account_is_told(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bmc_takeovers, "disable_account", lambda *_: None)
    monkeypatch.setattr(bmc_takeovers, "PROOF_S", 0.5)
    with pytest.raises(AssayError, match="the BMC refuses its factory login assay: not within"):
        rack.take_over()
    assert rack.steps() == ["started", "failed"]


def test_another_machine_behind_the_bmc_gets_no_login(rack: Rack) -> None:
    with rack.rehearsal.world.change(NODE) as state:
        state["serial"] = "OTHER"
    before = rack.rehearsal.world.load(NODE)["accounts"]
    with pytest.raises(AssayError, match="behind this BMC is serial OTHER"):
        rack.take_over()
    assert rack.rehearsal.world.load(NODE)["accounts"] == before


def test_a_bmc_with_neither_login_is_told_and_not_touched(rack: Rack) -> None:
    entry = {"user": rack.factory[0], "digest": "", "enabled": True, "locked": False, "role": "Administrator"}
    with rack.rehearsal.world.change(NODE) as state:
        state["accounts"] = {"1": entry}
    with pytest.raises(AssayError, match="refuses both its factory login and that of bmc_credentials"):
        rack.take_over()
    assert rack.steps() == []


def test_another_certificate_gets_not_one_byte(rack: Rack, tiny: Any) -> None:
    node = tiny.node(bmc_fingerprint=OTHER_CERTIFICATE).settings
    settings = {name: getattr(node, name) for name in ("bmc_port", "bmc_fingerprint")}
    with pytest.raises(AssayError, match="is not the one that bmc_fingerprint pins"):
        rack.take_over(**settings)
    assert (tiny.asked, rack.steps()) == ([], [])


def test_without_a_declared_certificate_no_login_is_sent(rack: Rack, tiny: Any) -> None:
    with pytest.raises(AssayError, match="no certificate is declared"):
        rack.take_over(bmc_port=tiny.port, bmc_ca="")
    assert tiny.asked == []


def test_the_factory_login_is_no_new_one(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_BMC", ":".join(rack.factory))
    with pytest.raises(AssayError, match="bmc_credentials are the factory login"):
        rack.take_over()


def test_a_node_of_no_delivery_has_no_factory_login(rack: Rack) -> None:
    fleet = rack.fleet()
    with pytest.raises(AssayError, match="no delivery says"):
        take_over(rack.context(fleet), fleet.nodes["n0001"])


def put_slots(tiny: Any, *users: str) -> None:
    """Give the small BMC slots for accounts, of which it creates none."""
    where = "/redfish/v1/AccountService/Accounts"
    slots = {f"{where}/{number}": user for number, user in enumerate(users, 1)}
    for path, user in slots.items():
        tiny.tree[path] = {"@odata.id": path, "Id": path[-1], "UserName": user}
    listed = {"@odata.id": where, "Members": [{"@odata.id": path} for path in slots]}
    tiny.tree["/redfish/v1/AccountService"] = {"@odata.id": where[:-9], "Accounts": {"@odata.id": where}}
    tiny.tree["/redfish/v1"]["AccountService"] = {"@odata.id": where[:-9]}
    refuse, show = tiny.status(405, f"no such method for {NEW}"), tiny.whole(listed)
    tiny.odd[where] = lambda call: (refuse if call.command == "POST" else show)(call)


def test_a_bmc_with_slots_gets_the_account_into_an_empty_one(tiny: Any, ca_file: Path) -> None:
    put_slots(tiny, "", "root", "", "")
    with open_bmc(tiny.node(bmc_ca=str(ca_file))) as bmc:
        give_account(bmc, "fleet", NEW)
        disable_account(bmc, "root")
    slots = {one["Id"]: one for path, one in tiny.tree.items() if "/Accounts/" in path}
    assert (slots["3"]["UserName"], slots["3"]["RoleId"], slots["3"]["Enabled"]) == ("fleet", "Administrator", True)
    assert (slots["1"]["UserName"], slots["4"]["UserName"], slots["2"]["Enabled"]) == ("", "", False)


def test_a_bmc_without_an_empty_slot_is_told(tiny: Any, ca_file: Path) -> None:
    register_secret(NEW)
    put_slots(tiny, "", "root")
    with open_bmc(tiny.node(bmc_ca=str(ca_file))) as bmc, pytest.raises(AssayError, match="answered 405") as trouble:
        give_account(bmc, "fleet", NEW)
    assert NEW not in str(trouble.value)


def test_no_error_shows_a_password_that_a_bmc_repeats_not_even_where_it_is_cut() -> None:
    register_secret(f"fleet:{NEW}")
    for length in (0, 170, 190, 199):
        words = f"{'x' * length} {NEW} is not complex enough"
        answer = SimpleNamespace(status=400, dict={"error": {"message": words}})
        said = str(error_for_response(cast(Any, answer), "PATCH", "/path", "n0003"))
        assert NEW[:4] not in said


def test_the_command_takes_over_what_the_inventory_pins(
    rack: Rack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared, root = rack.rehearsal.fleet.nodes[NODE], tmp_path / "fleet"
    for part in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    found = ask_service_root("127.0.0.1", declared.settings.bmc_port)
    assert found is not None
    login = {"bmc_credentials": {"env": "NEW_BMC"}, "bmc_fingerprint": found.fingerprint}
    where = {"bmc_address": "127.0.0.1", "bmc_port": declared.settings.bmc_port}
    (root / "inventory/new.yml").write_text(yaml.safe_dump({"h100-a": {"hosts": {NODE: login | where}}}))
    path = root / "specs/expected/2026-11-hgx-h100.yaml"
    delivery = yaml.safe_load(path.read_text())
    delivery["machines"][0] |= {"serial_number": declared.serial, "name": NODE}
    path.write_text(yaml.safe_dump(delivery | {"factory_credentials": {"env": "FACTORY"}}))
    monkeypatch.setenv("ASSAY_FLEET", str(root))
    monkeypatch.setenv("FACTORY", ":".join(rack.factory))

    first, second = (CliRunner().invoke(app, ["discover", "take-over", *words]) for words in ([], [NODE]))

    assert (first.exit_code, second.exit_code) == (0, 0), (first.output, first.exception)
    assert first.stdout == f"{NODE}: its BMC has the login fleet, and refuses the factory's assay\n"
    assert "has the login fleet already" in second.stdout
    assert rack.accepts("fleet", NEW)
    for answer in (first, second):
        assert NEW not in answer.output
        assert rack.factory[1] not in answer.output
    monkeypatch.setenv("NEW_BMC", "fleet:another-canary-77")
    failed = CliRunner().invoke(app, ["discover", "take-over", NODE])
    assert (failed.exit_code, "refuses both" in failed.stderr, "canary" in failed.output) == (1, True, False)
