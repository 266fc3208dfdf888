"""The rules of the Redfish protocol, checked with DMTF's validator and with plain HTTP."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redfish_protocol_validator import console_scripts, resources, sessions, utils
from redfish_protocol_validator.constants import Result
from redfish_protocol_validator.system_under_test import SystemUnderTest

from assay.lab.bmc import odata_responses

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/System_0"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INVENTORY = f"{ROOT}/UpdateService/FirmwareInventory"
ACCOUNTS = f"{ROOT}/AccountService/Accounts"


@pytest.fixture
def trusting(lab: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Any:
    """The validator's HTTP client, which prefers the environment's trust to its own option, trusts this lab.

    SSDP is multicast on the real network and takes 18 s of waiting; nobody answers it in this test.
    """
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(lab.world.home / "ca.pem"))
    monkeypatch.setattr(utils, "discover_ssdp", lambda **_: {})
    caplog.set_level(logging.CRITICAL)
    return lab


def judged(lab: Any) -> SystemUnderTest:
    """Do what the validator's own main does, in this process."""
    sut = SystemUnderTest(lab.base(), "operator", "a-long-secret", verify=str(lab.world.home / "ca.pem"))
    sut.set_avoid_http_redirect(True)
    sut.login()
    resources.read_target_resources(sut, func=resources.get_default_resources)
    stranger = sessions.no_auth_session(sut)
    resources.read_uris_no_auth(sut, stranger)
    resources.data_modification_requests(sut)
    resources.data_modification_requests_no_auth(sut, stranger)
    resources.unsupported_requests(sut)
    resources.basic_auth_requests(sut)
    resources.http_requests(sut)
    resources.bad_auth_requests(sut)
    sessions.bad_login(sut)
    console_scripts.perform_tests(sut)
    sut.logout()
    return sut


@pytest.mark.filterwarnings("ignore:ssl:DeprecationWarning")  # the validator tries TLS versions one by one
def test_dmtfs_protocol_validator_finds_nothing_wrong(trusting: Any) -> None:
    sut = judged(trusting)
    found = [entry for entries in sut.results.values() for entry in entries if entry["result"] is Result.FAIL]
    assert [f"{entry['assertion'].name} {entry['uri']}: {entry['msg']}" for entry in found] == []
    assert sut.summary_count(Result.PASS) > 300


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:ssl:DeprecationWarning")
def test_the_judge_does_find_what_is_wrong(trusting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(odata_responses.COMMON_HEADERS, "OData-Version", "3.0")
    found = [entry for entries in judged(trusting).results.values() for entry in entries]
    assert "RESP_HEADERS_ODATA_VERSION" in {e["assertion"].name for e in found if e["result"] is Result.FAIL}


@pytest.mark.parametrize("path", ["/redfish", ROOT, f"{ROOT}/", f"{ROOT}/odata", f"{ROOT}/$metadata"])
def test_the_entrance_needs_no_login(lab: Any, path: str) -> None:
    with lab.http() as session:
        session.auth = None
        assert session.get(lab.base() + path).status_code == 200


@pytest.mark.parametrize("path", [SYSTEM, INVENTORY, ACCOUNTS, f"{ROOT}/no/such/thing"])
def test_everything_else_does(lab: Any, path: str) -> None:
    with lab.http() as session:
        session.auth = None
        answer = session.get(lab.base() + path)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="bmc"')
    assert answer.json()["error"]["code"].endswith("NoValidSession")


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Auth-Token": "0" * 48},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic bm9ib2R5OnBhc3N3b3Jk"},
        {"Authorization": "Bearer x"},
    ],
)
def test_wrong_credentials_are_a_401(lab: Any, headers: dict[str, str]) -> None:
    with lab.http() as session:
        session.auth = None
        assert session.post(lab.base() + RESET, json={"ResetType": "ForceOff"}, headers=headers).status_code == 401
    assert lab.state()["power"]["state"] == "On"


def test_every_link_of_the_tree_leads_somewhere_and_every_resource_names_itself(lab: Any) -> None:
    seen, waiting = set(), [f"{ROOT}/"]
    with lab.http() as session:
        while waiting:
            path = waiting.pop()
            answer = session.get(lab.base() + path)
            assert answer.status_code == 200, path
            seen.add(path)
            waiting += [link for link in links(answer.json()) if link not in seen and link not in waiting]
            assert path in {answer.json().get("@odata.id"), f"{answer.json().get('@odata.id')}/"}, path
    assert len(seen) > 80


def links(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["@odata.id"]] if set(part) == {"@odata.id"} else []
        return own + [link for inner in part.values() for link in links(inner)]
    return [link for inner in part for link in links(inner)] if isinstance(part, list) else []


def test_head_says_what_get_says_without_the_body(lab: Any) -> None:
    head, get = lab.ask("HEAD", SYSTEM), lab.ask("GET", SYSTEM)
    assert (head.status_code, head.content) == (200, b"")
    assert (head.headers["ETag"], head.headers["Allow"]) == (get.headers["ETag"], "GET, HEAD, PATCH")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{ROOT}/Nothing", 404),
        ("GET", f"{INVENTORY}/NO_SUCH_CHIP", 404),
        ("GET", f"{ROOT}/Chassis/Chassis_0/PowerSubsystem/PowerSupplies/99", 404),
        ("GET", f"{ROOT}/Chassis/Chassis_0/PowerSubsystem/PowerSupplies/-1", 404),
        ("GET", f"{ROOT}/Chassis/Chassis_0/PowerSubsystem/PowerSupplies/x", 404),
        ("GET", f"{ROOT}/TaskService/TaskMonitors/7", 404),
        ("GET", RESET, 405),
        ("POST", SYSTEM, 405),
        ("DELETE", INVENTORY, 405),
        ("BREW", SYSTEM, 405),
        ("POST", f"{ROOT}/Nothing", 404),
    ],
)
def test_what_is_not_there_or_not_allowed_is_said_in_redfishs_form(
    lab: Any, method: str, path: str, status: int
) -> None:
    answer = lab.ask(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["@Message.ExtendedInfo"][0]["MessageId"].startswith("Base.1.18.")
    assert ("Allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"ResetType": "SelfDestruct"}', "PropertyValueNotInList"),
        (b'{"ResetType": ["On"]}', "PropertyValueNotInList"),
        (b"{}", "PropertyMissing"),
        (b'{"ResetType": "On", "Force": true}', "PropertyUnknown"),
        (b"[]", "MalformedJSON"),
        (b"{not json", "MalformedJSON"),
        (b"\xff", "MalformedJSON"),
    ],
)
def test_a_bad_reset_is_a_400_and_resets_nothing(lab: Any, body: bytes, code: str) -> None:
    before = lab.state()["boot"]
    answer = lab.ask("POST", RESET, data=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, f"Base.1.18.{code}")
    assert lab.state()["boot"] == before


@pytest.mark.parametrize(
    "wish",
    [
        {"ImageURI": "ftp://127.0.0.1/gpu.bin"},
        {"ImageURI": "127.0.0.1/gpu.bin", "TransferProtocol": "NFS"},
        {"ImageURI": ["http://127.0.0.1:9/gpu.bin"]},
        {"ImageURI": "http://127.0.0.1:9/gpu.bin", "Targets": [SYSTEM]},
        {"ImageURI": "http://127.0.0.1:9/gpu.bin", "Targets": 7},
        {"ImageURI": "http://127.0.0.1:9/gpu.bin", "@Redfish.OperationApplyTime": "OnReset"},
        {"ImageURI": "http://127.0.0.1:9/gpu.bin", "Password": "for the file server"},
        {},
    ],
)
def test_an_update_that_is_asked_for_in_a_way_we_do_not_have_is_refused_and_no_task(
    lab: Any, wish: dict[str, Any]
) -> None:
    assert lab.ask("POST", f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate", json=wish).status_code == 400
    assert lab.state()["tasks"] == []


def test_a_restart_of_a_system_that_is_off_is_a_409(lab: Any) -> None:
    lab.ask("POST", RESET, json={"ResetType": "ForceOff"})
    assert lab.ask("POST", RESET, json={"ResetType": "ForceRestart"}).status_code == 409


def test_expand_skip_and_top_shape_a_collection(lab: Any) -> None:
    count = len(lab.state()["firmware"])
    page = lab.ask("GET", f"{INVENTORY}?$skip=2&$top=3").json()
    assert (len(page["Members"]), page["Members@odata.count"]) == (3, count)
    assert page["Members@odata.nextLink"] == f"{INVENTORY}?$skip=5&$top=3"
    whole = lab.ask("GET", f"{INVENTORY}?$expand=*($levels=1)&$top=1").json()["Members"][0]
    assert whole["Version"] == lab.state()["firmware"][whole["Id"]]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("$filter=Id eq", 400),
        ("$filter=Id like 'BMC'", 400),
        ("$filter=(Id eq 'BMC'", 400),
        ("$orderby=Id", 501),
        ("$expand=everything", 400),
        ("$expand=.($levels=9)", 400),
        ("$top=-1", 400),
        ("$skip=x", 400),
        ("$select=Id", 501),
    ],
)
def test_a_query_that_is_not_understood_is_refused_and_never_ignored(lab: Any, query: str, status: int) -> None:
    assert lab.ask("GET", f"{INVENTORY}?{query}").status_code == status


def test_an_etag_saves_a_transfer_and_a_lost_update(lab: Any) -> None:
    tag = lab.ask("GET", SYSTEM).headers["ETag"]
    assert lab.ask("GET", SYSTEM, headers={"If-None-Match": tag}).status_code == 304
    boot = {"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}
    changed = lab.ask("PATCH", SYSTEM, json=boot, headers={"If-Match": tag})
    assert (changed.status_code, changed.json()["Boot"]["BootSourceOverrideTarget"]) == (200, "Pxe")
    assert changed.headers["ETag"] == lab.ask("GET", SYSTEM).headers["ETag"] != tag
    assert lab.ask("PATCH", SYSTEM, json=boot, headers={"If-Match": tag}).status_code == 412


def test_of_many_writers_that_saw_the_same_version_one_wins(lab: Any) -> None:
    tag = lab.ask("GET", SYSTEM).headers["ETag"]
    targets = ["Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp"]

    def write(target: str) -> int:
        boot = {"Boot": {"BootSourceOverrideTarget": target}}
        return int(lab.ask("PATCH", SYSTEM, json=boot, headers={"If-Match": tag}).status_code)

    with ThreadPoolExecutor(5) as pool:
        answers = sorted(pool.map(write, targets))
    assert answers == [200, 412, 412, 412, 412]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"SerialNumber": "mine"}, "PropertyNotWritable"),
        ({"Nonsense": 1}, "PropertyUnknown"),
        ({"Boot": {"BootSourceOverrideTarget": "Floppy"}}, "PropertyValueNotInList"),
        ({"Boot": {"BootOrder": []}}, "PropertyNotWritable"),
        ({"Boot": "Pxe"}, "MalformedJSON"),
    ],
)
def test_what_cannot_be_set_is_refused(lab: Any, body: dict[str, Any], code: str) -> None:
    answer = lab.ask("PATCH", SYSTEM, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, f"Base.1.18.{code}")
    assert lab.state().get("boot_override") is None


def test_a_reader_may_read_and_change_only_their_own_password(lab: Any) -> None:
    made = lab.ask("POST", ACCOUNTS, json={"UserName": "guest", "Password": "look-only-1", "RoleId": "ReadOnly"})
    assert (made.status_code, made.json()["Password"]) == (201, None)
    with lab.http() as session:
        session.auth = ("guest", "look-only-1")
        assert session.get(lab.base() + SYSTEM).status_code == 200
        assert session.post(lab.base() + RESET, json={"ResetType": "ForceOff"}).status_code == 403
        assert session.patch(lab.base() + f"{ACCOUNTS}/1", json={"Password": "stolen-it-1"}).status_code == 403
        own = lab.base() + made.headers["Location"]
        assert session.patch(own, json={"RoleId": "Administrator"}).status_code == 403
        assert session.patch(own, json={"Password": "look-only-2"}).status_code == 200
    assert lab.state()["power"]["state"] == "On"
    assert lab.ask("DELETE", made.headers["Location"]).status_code == 204
    assert lab.ask("DELETE", f"{ACCOUNTS}/1").status_code == 409
