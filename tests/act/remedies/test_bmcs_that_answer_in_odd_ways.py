"""An update through a BMC that does what Redfish allows: the image is pushed once, and recorded, in two runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from assay.act.actions import action
from assay.act.remedies.bmc_updates import FirmwareUpdater
from assay.act.remedies.firmware_stages import FirmwareStage
from assay.act.remedies.firmware_update import FirmwareUpdateRun, report_failure, report_stages
from assay.adapters.bmc.client import open_bmc
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.firmware_bundle import FirmwareComponent
from tests.support.bmc_rehearsal import PASSWORD, USER, TinyBmc, authority, ca_file, knows, reply, serve_tiny, tiny

__all__ = ["authority", "ca_file", "tiny"]

IMAGE = b"\0an image\r\n" * 100
SERVICE = "/redfish/v1/UpdateService"
TASKS = "/redfish/v1/TaskService/Tasks"
TASK, MONITOR = f"{TASKS}/1", "/redfish/v1/TaskService/TaskMonitors/1"
INVENTORY = f"{SERVICE}/Firm/BMC"
MESSAGE = {"@Message.ExtendedInfo": [{"MessageId": "Base.1.0.Success", "Message": "well received"}]}


@dataclass
class OddBmc:
    """A BMC with one part, which runs what was pushed after a reset of the BMC.

    `location`, `body`: of the answer to a push. `ends`: what its task, or monitor, says at the end: a status and a
    body. `running`: for how many readings it runs, and `answers`: with which status, its monitor always with 202.
    `writes`: whether the image is written.
    """

    tiny: TinyBmc
    location: str = TASK
    body: Any = None
    ends: tuple[int, Any] = (200, None)
    running: int = 2
    answers: int = 200
    writes: bool = True
    offers: tuple[str, ...] = ("MultipartHttpPushUri",)
    lists_tasks: bool = True
    loses_answer: bool = False
    busy: int = 0
    forgets_sessions: bool = False
    images: list[bytes] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)
    resets: int = 0
    staged: str = ""

    def __post_init__(self) -> None:
        tree, odd = self.tiny.tree, self.tiny.odd
        service = tree[SERVICE]
        if "SimpleUpdate" in self.offers:
            service["Actions"] = {"#UpdateService.SimpleUpdate": {"target": f"{SERVICE}/simple"}}
        service |= {name: f"{SERVICE}/push" for name in self.offers if name.endswith("Uri")}
        manager = {"@odata.id": "/redfish/v1/Managers/BMC"}
        tree[manager["@odata.id"]] = manager | {"Actions": {"#Manager.Reset": {"target": "/reset"}}}
        tree["/redfish/v1/Systems/Host"]["Links"]["ManagedBy"] = [manager]
        if self.lists_tasks:
            tree["/redfish/v1"]["Tasks"] = {"@odata.id": "/redfish/v1/TaskService"}
            tree["/redfish/v1/TaskService"] = {"@odata.id": "/redfish/v1/TaskService", "Tasks": {"@odata.id": TASKS}}
            tree[TASKS] = {"@odata.id": TASKS, "Members": []}
        odd |= {f"{SERVICE}/push": self._take, f"{SERVICE}/simple": self._fetch, "/reset": self._reset}
        odd |= {TASK: self._tell, MONITOR: self._tell}

    def task(self, state: str, status: str = "OK") -> dict[str, Any]:
        """Return the task of the update."""
        named = [{"Message": f"the image is {state}", "MessageArgs": ["BMC"]}]
        return {"@odata.id": TASK, "TaskState": state, "TaskStatus": status, "Messages": named}

    def _take(self, call: BaseHTTPRequestHandler) -> None:
        if self._turns_away(call):
            return
        content = call.rfile.read()
        if "multipart" in call.headers["Content-Type"]:
            first = content.split(b"\r\n\r\n", 2)
            self.parameters.append(json.loads(first[1].split(b"\r\n")[0]))
            content = first[2].rpartition(b"\r\n--")[0]
        self._write(call, content)

    def _fetch(self, call: BaseHTTPRequestHandler) -> None:
        if self._turns_away(call):
            return
        body = json.load(call.rfile)
        self.parameters.append(body)
        with urllib.request.urlopen(body["ImageURI"]) as answer:
            self._write(call, answer.read())

    def _turns_away(self, call: BaseHTTPRequestHandler) -> bool:
        if not knows(self.tiny, call.headers):
            reply(call, 401, b"{}")
        elif self.busy:
            self.busy -= 1
            reply(call, 429, b"{}", Retry_After="0")
        else:
            return False
        return True

    def _write(self, call: BaseHTTPRequestHandler, content: bytes) -> None:
        self.images.append(content)
        self.staged = "2" if self.writes else ""
        if self.lists_tasks:
            self.tiny.tree[TASKS]["Members"] = [self.task("Running")]
        if self.forgets_sessions:
            self.tiny.sessions.clear()
        if self.loses_answer:
            call.close_connection = True
            return
        body = b"" if self.body is None else json.dumps(self.body).encode()
        reply(call, 202, body, **({"Location": self.location} if self.location else {}))

    def _tell(self, call: BaseHTTPRequestHandler) -> None:
        if not self.images:
            reply(call, 404, b"{}")
            return
        self.running -= 1
        if self.running >= 0:
            body = self.task("Running") if call.path == TASK else None
            reply(call, self.answers if call.path == TASK else 202, json.dumps(body).encode() if body else b"")
            return
        status, body = self.ends
        if self.lists_tasks:
            self.tiny.tree[TASKS]["Members"] = [body] if body and "TaskState" in body else []
        reply(call, status, b"" if body is None else json.dumps(body).encode())

    def _reset(self, call: BaseHTTPRequestHandler) -> None:
        self.resets += 1
        if self.staged:
            self.tiny.tree[INVENTORY]["Version"], self.staged = self.staged, ""
        self.tiny.sessions.clear()
        reply(call, 204, b"")


def bring(node: Node, folder: Path, push: str = "multipart") -> dict[str, Any]:
    """Bring the part to its version, and return what the Ansible module returns."""
    plain = {"name": "bmc", "version": "2", "inventory": ["BMC"], "push": push, "reset": "bmc", "order": 1}
    part, image = FirmwareComponent.model_validate(plain), folder / "image.bin"
    image.write_bytes(IMAGE)

    @contextlib.contextmanager
    def connect() -> Iterator[FirmwareUpdater]:
        with open_bmc(node) as bmc:
            yield FirmwareUpdater(bmc)

    work = FirmwareUpdateRun("n0042", connect, lambda _: (image, "not compared"), 15.0, 0.5, 0.0)
    try:
        done = [work.update_stage(FirmwareStage((part,)))]
        work.confirm([part])
    except AssayError as error:
        return report_failure(work, [], error)
    return report_stages(done)


def ended(state: str, status: str = "OK") -> dict[str, Any]:
    return {"@odata.id": TASK, "TaskState": state, "TaskStatus": status, "Messages": [{"MessageArgs": ["BMC"]}]}


WELL = (200, ended("Completed"))
LEGAL: dict[str, dict[str, Any]] = {
    "an absolute Location": {"location": f"https://127.0.0.1{TASK}", "ends": WELL},
    "an absolute Location with the BMC's own name": {"location": f"https://bmc.example:8443{TASK}", "ends": WELL},
    "a Location from where it was asked": {"location": "../TaskService/Tasks/1", "ends": WELL},
    "no Location but the task": {"location": "", "body": ended("New"), "ends": WELL},
    "no Location but the task's name": {"location": "", "body": {"@odata.id": TASK}, "ends": WELL},
    "a message beside the Location": {"body": MESSAGE, "ends": WELL},
    "neither Location nor task": {"location": "", "body": MESSAGE, "ends": WELL},
    "a monitor that ends with the task": {"location": MONITOR, "ends": WELL},
    "a monitor that ends with the task's name": {"location": MONITOR, "ends": (200, {"@odata.id": TASK})},
    "a monitor that ends with a message": {"location": MONITOR, "ends": (200, MESSAGE)},
    "a monitor that ends with 204": {"location": f"https://127.0.0.1{MONITOR}", "ends": (204, None)},
    "a monitor that is gone at the end": {"location": MONITOR, "ends": (404, {})},
    "a monitor that is gone for good": {"location": MONITOR, "ends": (410, {})},
    "a task that is gone at the end": {"ends": (404, {})},
    "a task that answers 202 while it runs": {"answers": 202, "ends": WELL},
    "a task that answers 202, and 204 at the end": {"answers": 202, "ends": (204, None)},
    "a task that answers 202, and is gone at the end": {"answers": 202, "ends": (404, {})},
    "completed, with a warning": {"ends": (200, ended("Completed", "Warning"))},
    "completed, and Ok": {"ends": (200, ended("Completed", "Ok"))},
    "COMPLETED": {"ends": (200, ended("COMPLETED"))},
    "a BMC without tasks": {"lists_tasks": False, "location": "", "body": MESSAGE},
    "too many requests": {"busy": 2, "ends": WELL},
    "a session that ran out": {"forgets_sessions": True, "ends": WELL},
    "an answer that is lost": {"loses_answer": True, "ends": WELL},
    "an answer that is lost, and no task": {"loses_answer": True, "lists_tasks": False},
    "SimpleUpdate alone": {"offers": ("SimpleUpdate",), "ends": WELL},
    "SimpleUpdate and a monitor": {"offers": ("SimpleUpdate",), "location": MONITOR, "ends": (204, None)},
    "HttpPushUri alone": {"offers": ("HttpPushUri",), "ends": WELL},
}


@pytest.mark.parametrize("name", LEGAL)
def test_it_is_brought_by_one_push_and_the_second_run_pushes_nothing(
    name: str, tiny: TinyBmc, ca_file: Path, tmp_path: Path
) -> None:
    bmc, node = OddBmc(tiny, **LEGAL[name]), tiny.node(bmc_ca=str(ca_file))
    result = bring(node, tmp_path)
    assert (result.get("msg"), result["pushed"]) == ("bmc: pushed bmc, resets: bmc", ["bmc"])
    assert (bmc.images, bmc.resets) == ([IMAGE], 1)
    again = bring(node, tmp_path)
    assert (again["changed"], again["pushed"], len(bmc.images)) == (False, [], 1)


@pytest.mark.parametrize("answers", [200, 202])
def test_an_update_that_runs_is_found_by_its_link_beside_that_of_a_task_that_is_gone(
    answers: int, tiny: TinyBmc, ca_file: Path, tmp_path: Path
) -> None:
    bmc = OddBmc(tiny, answers=answers, ends=WELL)
    bmc.images, bmc.staged = [IMAGE], "2"
    tiny.tree[TASKS]["Members"] = [{"@odata.id": f"{TASKS}/0"}, {"@odata.id": TASK}]
    result = bring(tiny.node(bmc_ca=str(ca_file)), tmp_path)
    assert (result.get("msg"), len(bmc.images), bmc.resets) == ("bmc: took over what was written, resets: bmc", 1, 1)


def test_the_inventory_decides_and_not_the_words_of_the_task(tiny: TinyBmc, ca_file: Path, tmp_path: Path) -> None:
    bmc = OddBmc(tiny, ends=(200, ended("Exception", "Critical")))
    pending = {"@odata.id": f"{SERVICE}/Firm/BMC_Pending", "Id": "BMC", "Version": "2"}
    tiny.odd[f"{INVENTORY}"] = lambda call: reply(
        call, 200, json.dumps(pending if bmc.images else {"Id": "BMC", "Version": "1"}).encode()
    )
    assert bring(tiny.node(bmc_ca=str(ca_file)), tmp_path)["pushed"] == ["bmc"]


@pytest.mark.parametrize(
    "ends", [(200, ended("Exception", "Critical")), (400, {"error": {"message": "bad signature"}})]
)
def test_what_was_pushed_is_recorded_whatever_came_after(
    tiny: TinyBmc, ca_file: Path, tmp_path: Path, ends: tuple[int, Any]
) -> None:
    bmc = OddBmc(tiny, location=MONITOR, ends=ends, writes=False)
    result = bring(tiny.node(bmc_ca=str(ca_file)), tmp_path)
    assert (result["failed"], result["changed"], result["pushed"]) == (True, True, ["bmc"])
    assert "the update of bmc failed" in result["msg"]
    assert (len(bmc.images), bmc.resets) == (1, 0)


def test_what_was_refused_is_not_recorded_as_pushed(tiny: TinyBmc, ca_file: Path, tmp_path: Path) -> None:
    OddBmc(tiny)
    tiny.odd[f"{SERVICE}/push"] = tiny.status(400, "not today")
    result = bring(tiny.node(bmc_ca=str(ca_file)), tmp_path)
    assert (result["failed"], result["changed"], result["pushed"]) == (True, False, [])


SUPPORT = "@Redfish.OperationApplyTimeSupport"


@pytest.mark.parametrize(
    ("offered", "asked"),
    [
        (None, {"@Redfish.OperationApplyTime": "Immediate"}),
        (["OnReset"], {"@Redfish.OperationApplyTime": "OnReset"}),
        (["AtMaintenanceWindowStart"], {}),
    ],
)
def test_the_apply_time_is_one_that_the_bmc_offers(
    tiny: TinyBmc, ca_file: Path, tmp_path: Path, offered: list[str] | None, asked: dict[str, str]
) -> None:
    bmc = OddBmc(tiny, ends=WELL)
    if offered:
        tiny.tree[SERVICE][f"MultipartHttpPushUri{SUPPORT}"] = {"SupportedValues": offered}
    bring(tiny.node(bmc_ca=str(ca_file)), tmp_path)
    assert bmc.parameters == [asked]


def test_a_plain_push_is_not_left_for_a_maintenance_window(tiny: TinyBmc, ca_file: Path, tmp_path: Path) -> None:
    OddBmc(tiny, offers=("HttpPushUri",), ends=WELL)
    tiny.tree[SERVICE]["HttpPushUriOptions"] = {"HttpPushUriApplyTime": {"ApplyTime": "AtMaintenanceWindowStart"}}
    assert bring(tiny.node(bmc_ca=str(ca_file)), tmp_path)["pushed"] == ["bmc"]
    assert tiny.tree[SERVICE]["HttpPushUriOptions"] == {"HttpPushUriApplyTime": {"ApplyTime": "Immediate"}}


def fingerprint(pem: bytes, *, of_key: bool) -> str:
    leaf = x509.load_pem_x509_certificate(pem)
    key = leaf.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(key if of_key else leaf.public_bytes(Encoding.DER)).hexdigest()}"


def renew(box: TinyBmc, folder: Path, *, same_key: bool) -> str:
    """Give a BMC a new certificate, for its old key or another one; return the certificate's fingerprint."""
    assert box.leaf
    key = (
        load_pem_private_key(box.leaf.private_key_pem.bytes(), None)
        if same_key
        else ec.generate_private_key(ec.SECP256R1())
    )
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bmc")]), datetime.now(UTC)
    new = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    new = new.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=9))
    pem = new.sign(key, SHA256()).public_bytes(Encoding.PEM)
    file = folder / "renewed.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    box.renewed = context
    return fingerprint(pem, of_key=False)


@pytest.mark.parametrize(
    ("pins_key", "same_key", "is_brought"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_a_renewed_certificate_is_accepted_by_its_pinned_key_and_else_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pins_key: bool, same_key: bool, is_brought: bool
) -> None:
    monkeypatch.setenv("TINY_BMC", f"{USER}:{PASSWORD}")
    monkeypatch.setattr(action.wait_until, "__defaults__", ("", 0.5))
    shown: list[str] = []
    with serve_tiny(trustme.CA(), "127.0.0.1") as box:
        bmc = OddBmc(box, ends=WELL)

        def reset(call: BaseHTTPRequestHandler) -> None:
            bmc._reset(call)
            shown.append(renew(box, tmp_path, same_key=same_key))

        box.odd["/reset"] = reset
        assert box.leaf
        pin = fingerprint(box.leaf.cert_chain_pems[0].bytes(), of_key=pins_key)
        result = bring(box.node(bmc_fingerprint=pin), tmp_path)
    assert (result["pushed"], len(bmc.images)) == (["bmc"], 1)
    assert result.get("failed", False) != is_brought
    if not is_brought:
        assert f"certificate is not the one that bmc_fingerprint pins: it shows {shown[0]}" in result["msg"]
        assert "declare it as bmc_fingerprint" in result["msg"]
