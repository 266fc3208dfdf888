"""Reading a BMC: the same tree whatever it offers, four kinds of answer, and nothing that can hold up the pass."""

from __future__ import annotations

import json
import logging
import os
import ssl
import tarfile
import time
from http.server import BaseHTTPRequestHandler
from logging.config import dictConfig
from pathlib import Path
from typing import Any

import pytest
import trustme

from assay.adapters.bmc.client import open_bmc
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.observe.evidence_collector import read_bmc_channel
from tests.support.places import ROOT

TAIL = "nary-9f2c"
SILENT_S = 20  # so long a tiny BMC says nothing, or for ever byte by byte
POWER = "/redfish/v1/Chassis/Box/PowerSubsystem/PowerSupplies"


def read(tiny: Any, ca_file: Path, deadline_s: float = 30.0, **variables: Any) -> dict[str, Any]:
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file), **variables), Path(), deadline_s)


def offer_expand(tiny: Any, levels: int) -> None:
    tiny.tree["/redfish/v1"]["ProtocolFeaturesSupported"] = {
        "ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": levels}
    }


def test_every_kind_of_reading_comes_out_as_what_it_is(tiny: Any, ca_file: Path) -> None:
    tree = read(tiny, ca_file)
    assert tree["system"]["power"] == {"value": "On"}
    assert tree["system"]["model"] == {"failed": "the BMC does not know Model (null)"}
    assert "unsupported" in tree["system"]["boot_progress"]
    assert tree["psu"]["1"] == {"absent": "the bay is empty"}
    assert tree["psu"]["2"]["input_v"] == {"value": 230.5}
    assert "failed" in tree["psu"]["2"]["output_w"]
    assert tree["sensor"]["inlet_c"] == {"value": 24}
    assert tree["firmware"]["BMC"] == {"value": "01.05.11"}
    assert "failed" in tree["firmware"]["HGX_FW_BMC_0"]
    assert tree["events"]["value"][0]["message"] == "Power on"


def test_parts_are_numbered_by_their_bay_and_else_by_their_place(tiny: Any, ca_file: Path) -> None:
    tree = read(tiny, ca_file)
    assert sorted(tree["psu"]) == ["0", "1", "2"]
    assert [tree["fan"][place]["rpm"] for place in ("0", "1")] == [{"value": 8001}, {"value": 8002}]


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_expanding_saves_requests_and_changes_nothing(tiny: Any, ca_file: Path, levels: int) -> None:
    plain, requests = read(tiny, ca_file), len(tiny.asked)
    tiny.asked.clear()
    offer_expand(tiny, levels)
    assert read(tiny, ca_file) == plain
    assert len(tiny.asked) < requests * 0.75


def test_a_service_that_offers_expand_but_cannot_is_asked_plainly(tiny: Any, ca_file: Path) -> None:
    plain = read(tiny, ca_file)
    offer_expand(tiny, 2)
    firmware = "/redfish/v1/UpdateService/Firm"
    tiny.odd[firmware] = lambda call: _only_plain(tiny, call, firmware)
    assert read(tiny, ca_file) == plain


def _only_plain(tiny: Any, call: BaseHTTPRequestHandler, path: str) -> None:
    if "expand" in call.path:
        tiny.status(501)(call)
    else:
        del tiny.odd[path]
        call.do_GET()  # type: ignore[attr-defined]


def test_the_older_power_and_thermal_resources_give_the_same_readings(tiny: Any, ca_file: Path) -> None:
    box = tiny.tree["/redfish/v1/Chassis/Box"]
    del box["PowerSubsystem"], box["ThermalSubsystem"]
    box["Power"], box["Thermal"] = {"@odata.id": "/redfish/v1/P"}, {"@odata.id": "/redfish/v1/T"}
    supply = {"MemberId": "0", "Status": {"State": "Enabled", "Health": "OK"}, "LineInputVoltage": 229}
    tiny.tree["/redfish/v1/P"] = {"PowerSupplies": [supply | {"LastPowerOutputWatts": 600}]}
    tiny.tree["/redfish/v1/T"] = {
        "Fans": [{"MemberId": "0", "Status": {"Health": "Critical"}, "Reading": 0}],
        "Temperatures": [
            {"PhysicalContext": "CPU", "ReadingCelsius": 60},
            {"PhysicalContext": "Intake", "ReadingCelsius": 23},
        ],
    }
    tree = read(tiny, ca_file)
    assert tree["psu"]["0"]["output_w"] == {"value": 600}
    assert tree["fan"]["0"] == {"health": {"value": "Critical"}, "rpm": {"value": 0}}
    assert tree["sensor"]["inlet_c"] == {"value": 23}


def test_several_temperatures_that_claim_to_be_the_intake_are_not_believed(tiny: Any, ca_file: Path) -> None:
    tiny.tree["/redfish/v1/T"] = {"Temperatures": [{"PhysicalContext": "Intake", "ReadingCelsius": 23}] * 3}
    tiny.tree["/redfish/v1/Chassis/Box"] |= {"ThermalSubsystem": {"@odata.id": "/redfish/v1/T"}}
    reason = "3 temperatures of the chassis are marked as its intake"
    assert read(tiny, ca_file)["sensor"]["inlet_c"] == {"unsupported": reason}


def test_the_event_log_is_found_at_the_manager_too_and_no_other_log_stands_in_for_it(tiny: Any, ca_file: Path) -> None:
    logs = tiny.tree["/redfish/v1/Systems/Host/LogServices"]
    events = logs["Members"].pop()
    assert "unsupported" in read(tiny, ca_file)["events"]
    manager = "/redfish/v1/Managers/M"
    tiny.tree[manager] = {"@odata.id": manager, "LogServices": {"@odata.id": "/redfish/v1/L"}}
    tiny.tree["/redfish/v1/L"] = {"Members": [events]}
    tiny.tree["/redfish/v1/Systems/Host"]["Links"]["ManagedBy"] = [{"@odata.id": manager}]
    assert [event["id"] for event in read(tiny, ca_file)["events"]["value"]] == ["1"]


def test_a_collection_is_read_over_all_its_pages(tiny: Any, ca_file: Path) -> None:
    firmware = tiny.tree["/redfish/v1/UpdateService/Firm"]
    tiny.tree["/redfish/v1/Page2"] = {"Members": firmware["Members"][1:]}
    firmware["Members"] = firmware["Members"][:1]
    firmware["Members@odata.nextLink"] = "/redfish/v1/Page2"
    assert set(read(tiny, ca_file)["firmware"]) == {"BMC", "BIOS", "HGX_FW_BMC_0"}


def test_a_collection_without_an_end_fails_alone(tiny: Any, ca_file: Path) -> None:
    tiny.tree["/redfish/v1/UpdateService/Firm"]["Members@odata.nextLink"] = "/redfish/v1/UpdateService/Firm"
    tiny.tree["/redfish/v1/UpdateService/Firm"]["Members"] = []
    tree = read(tiny, ca_file)
    assert "more than 100 pages" in tree["firmware"]["failed"]
    assert tree["system"]["power"] == {"value": "On"}


def test_what_the_bmc_has_not_is_unsupported_and_what_it_cannot_say_failed(tiny: Any, ca_file: Path) -> None:
    del tiny.tree["/redfish/v1/UpdateService/Firm"]
    tiny.odd[POWER] = tiny.status(500, "internal\nerror")
    tree = read(tiny, ca_file)
    assert tree["firmware"] == {"unsupported": "the BMC has no /redfish/v1/UpdateService/Firm"}
    assert tree["psu"] == {"failed": f"GET {POWER} answered 500: internal error"}
    assert tree["fan"]["0"]["health"] == {"value": "OK"}


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"Members": 7}', b'{"Members": [{"Id": "x"}]}', b'{"Members": [{}]}']
)
def test_an_answer_that_is_not_redfish_fails_its_branch_only(tiny: Any, ca_file: Path, body: bytes) -> None:
    tiny.odd[POWER] = lambda call: _say(call, body)
    tree = read(tiny, ca_file)
    assert "value" not in tree["psu"]
    assert tree["system"]["serial"] == {"value": "S42"}


def _say(call: BaseHTTPRequestHandler, body: bytes, code: int = 200) -> None:
    call.send_response(code)
    call.send_header("Content-Length", str(len(body)))
    call.end_headers()
    call.wfile.write(body)


@pytest.mark.parametrize("manner", ["silence", "trickle"])
def test_a_bmc_that_never_answers_fails_as_a_whole_and_on_time(tiny: Any, ca_file: Path, manner: str) -> None:
    tiny.odd["/redfish/v1"] = getattr(tiny, manner)
    begin = time.monotonic()
    assert read(tiny, ca_file, 0.6) == {"failed": "no answer within 0.6 s"}
    assert time.monotonic() - begin < SILENT_S


def test_a_bmc_that_falls_silent_after_the_login_fails_as_a_whole(tiny: Any, ca_file: Path) -> None:
    tiny.odd = {path: tiny.silence for path in tiny.tree if path != "/redfish/v1"}
    assert read(tiny, ca_file, 0.6) == {"failed": "no answer within 0.6 s"}


def test_a_login_that_hangs_is_not_waited_for(tiny: Any, ca_file: Path) -> None:
    tiny.odd["/redfish/v1/SessionService/Sessions"] = tiny.silence
    assert read(tiny, ca_file, 0.6) == {"failed": "no answer within 0.6 s"}


def test_the_password_is_never_shown_whatever_goes_wrong(
    tiny: Any, ca_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    dictConfig({"version": 1, "disable_existing_loggers": False})  # as uvicorn does: it wakes loggers that were put off
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TINY_BMC", f'watcher:wrong"{TAIL}')
    with pytest.raises(AssayError) as refused, open_bmc(tiny.node(bmc_ca=str(ca_file))):
        pass
    tiny.odd["/redfish/v1/SessionService/Sessions"] = tiny.status(400, f'{{"Password": "wrong\\"{TAIL}"}} is bad')
    shown = (
        str(read(tiny, ca_file)) + repr(refused.value) + str(refused.value) + caplog.text + "".join(capfd.readouterr())
    )
    assert TAIL not in shown
    assert "token-" not in shown


def test_a_bmc_that_wants_a_new_password_first_says_so(tiny: Any, ca_file: Path) -> None:
    message = {"MessageId": "Base.1.8.PasswordChangeRequired", "MessageArgs": ["/redfish/v1/Accounts/1"]}
    body = json.dumps({"error": {"@Message.ExtendedInfo": [message]}}).encode()
    tiny.odd["/redfish/v1/SessionService/Sessions"] = lambda call: _say(call, body, 403)
    assert read(tiny, ca_file) == {"failed": "the BMC wants its password changed before it answers anything"}


def test_a_wrong_password_is_said_with_node_address_and_what_to_do(
    tiny: Any, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_BMC", "watcher:wrong")
    with pytest.raises(AssayError) as refused, open_bmc(tiny.node(bmc_ca=str(ca_file))):
        pass
    assert f"n0042 BMC 127.0.0.1:{tiny.port}: the BMC refuses the user or the password" in str(refused.value)
    assert "bmc_credentials" in refused.value.fix


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (None, "no credentials are declared"),
        ({"env": "NOT_SET_ANYWHERE"}, "the environment variable NOT_SET_ANYWHERE is not set"),
        ({"file": "nowhere"}, "nowhere cannot be read: No such file or directory"),
        ({"file": "."}, "cannot be read: Is a directory"),
    ],
)
def test_credentials_that_are_not_there_are_named_by_reference(
    tiny: Any, ca_file: Path, reference: Any, said: str
) -> None:
    assert said in read(tiny, ca_file, bmc_credentials=reference)["failed"]


def test_a_secret_that_is_no_pair_is_refused_without_showing_it(tiny: Any, ca_file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"only{TAIL}\n")
    answer = read(tiny, ca_file, bmc_credentials={"file": str(tmp_path / "secret")})["failed"]
    assert 'does not hold "user:password"' in answer
    assert TAIL not in answer


def test_credentials_are_read_from_the_first_line_of_a_file(tiny: Any, ca_file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('watcher:ca"nary-9f2c\nsecond line\n')
    node = tiny.node(bmc_ca=ca_file.name, bmc_credentials={"file": "secret"})
    assert read_bmc_channel(node, tmp_path, 60)["system"]["power"] == {"value": "On"}


def test_a_certificate_of_another_authority_is_not_accepted(tiny: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    reason = read(tiny, other)["failed"]
    assert reason.startswith("its certificate is not accepted by bmc_ca other.pem")
    assert not any("Sessions" in path for path in tiny.asked)


def test_without_a_bmc_ca_the_systems_authorities_decide(tiny: Any) -> None:
    assert "not accepted by the system's authorities" in read_bmc_channel(tiny.node(), Path(), 60)["failed"]


def test_a_certificate_for_another_name_is_not_accepted(tiny: Any, ca_file: Path) -> None:
    assert "certificate is not accepted" in read(tiny, ca_file, bmc_address="localhost")["failed"]


def test_an_unusable_ca_file_is_said_plainly(tiny: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    assert "it holds no certificate" in read(tiny, tmp_path / "empty.pem")["failed"]
    assert "No such file" in read(tiny, tmp_path / "missing.pem")["failed"]


def test_nobody_listening_and_no_tls_are_said_plainly(tiny: Any, ca_file: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as plain:
        port = plain.getsockname()[1]
        assert read(tiny, ca_file, 0.5, bmc_port=port)["failed"] == "no answer within 0.5 s"
    assert read(tiny, ca_file, bmc_port=port)["failed"] == "connection refused"


def test_one_session_serves_the_whole_read_and_is_closed(tiny: Any, ca_file: Path) -> None:
    read(tiny, ca_file)
    assert tiny.asked.count("POST /redfish/v1/SessionService/Sessions") == 1
    assert tiny.asked[-1].startswith("DELETE")
    assert not tiny.sessions


def test_a_session_that_was_forgotten_is_opened_again(tiny: Any, ca_file: Path) -> None:
    with open_bmc(tiny.node(bmc_ca=str(ca_file))) as bmc:
        tiny.sessions.clear()
        assert bmc.read_power_state() == "On"


def test_a_service_root_behind_the_login_is_read_after_it(tiny: Any, ca_file: Path) -> None:
    def guarded(call: BaseHTTPRequestHandler) -> None:
        if call.headers.get("X-Auth-Token") in tiny.sessions:
            del tiny.odd["/redfish/v1"]
            call.do_GET()  # type: ignore[attr-defined]
        else:
            tiny.status(401)(call)

    tiny.odd["/redfish/v1"] = guarded
    assert read(tiny, ca_file)["system"]["power"] == {"value": "On"}


def test_neither_proxies_nor_netrc_come_between(
    tiny: Any, ca_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("default login x password y\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert read(tiny, ca_file)["system"]["power"] == {"value": "On"}


def test_a_node_without_a_bmc_is_absent_not_failed() -> None:
    node = Node("n1", "p", "s", "r", 1, "x", "spec", "managed")
    assert read_bmc_channel(node, Path(), 1) == {"absent": "no bmc_address is declared for n1"}


def test_trust_is_never_switched_off(ca_file: Path) -> None:
    from assay.adapters.bmc.tls import make_ca_context

    assert make_ca_context(ca_file).verify_mode is ssl.CERT_REQUIRED
    assert make_ca_context(ca_file).check_hostname


def test_a_real_recorded_dgx_reads_without_a_word_that_is_not_there(tiny: Any, ca_file: Path) -> None:
    """Needs $ASSAY_SAMPLES/redfish/dgx-h100-mockup.tar.xz, a recorded tree of a DGX H100 (NVIDIA/libredfish)."""
    recording = Path(os.environ.get("ASSAY_SAMPLES", "")) / "redfish/dgx-h100-mockup.tar.xz"
    if not recording.is_file():
        pytest.skip("ASSAY_SAMPLES names no folder with redfish/dgx-h100-mockup.tar.xz")
    tiny.tree = _recorded(recording)
    quirks = BmcQuirkSet(load_fleet(ROOT).quirks.values())
    tree = read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 60, quirks=quirks)
    assert tree["system"]["model"] == {"value": "DGXH100"}
    assert sorted(tree["psu"]) == list("012345")
    assert len(tree["firmware"]) == 66
    assert tree["firmware"]["HGX_FW_GPU_SXM_1"] == {"value": "96.00.89.00.01"}
    assert tree["firmware"]["BIOS"] == {"value": "1.1.3"}
    assert tree["sensor"]["inlet_c"] == {"value": 22}
    assert tree["sensor"]["temperature"]["TEMP_GB_SXM1"] == {"c": {"value": 27}, "high_c": {"value": 85}}
    assert tree["power"]["drawn_w"] == {"value": 1950}
    assert (len(tree["processor"]["gpu"]), len(tree["processor"]["cpu"]), len(tree["memory"])) == (8, 2, 32)
    assert {leaf["value"] for leaf in tree["health"].values()} == {"OK"}
    assert tree["bios"]["ARIEnable"] == {"value": "Enable"}
    assert not any("Password" in name for name in tree["bios"])
    assert tree["boot"]["order"]["value"][0].startswith("UEFI: PXE IPv4")
    assert tree["boot"]["secure"] == {"value": False}
    xids = [event for event in tree["events"]["value"] if " XID 62 " in event["message"]]
    assert {"HGX_GPU_SXM_2", "HGX_GPU_SXM_4"} <= {event["part"] for event in xids}
    assert "unsupported" in read(tiny, ca_file, 60)["sensor"]["inlet_c"], "every sensor claims to be the intake"


def _recorded(archive: Path) -> dict[str, Any]:
    with tarfile.open(archive) as recording:
        files = {entry.name: recording.extractfile(entry) for entry in recording if entry.name.endswith("index.json")}
        texts = {name: content.read() for name, content in files.items() if content}
    paths = {name: "/redfish" + name.partition("/redfish")[2].removesuffix("/index.json") for name in texts}
    return {paths[name]: _json(text) for name, text in texts.items()}


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}
