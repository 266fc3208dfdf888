"""Reads a BMC's firmware inventory, pushes an image by a method that the BMC offers, and reads its update tasks.

Vendors' ids and versions are normalized, so that equal firmware compares equal. A task is no proof: only the inventory
shows which version runs.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from redfish.rest.v1 import RestResponse

from assay.adapters.bmc.errors import error_for_response
from assay.adapters.bmc.resource import patch_resource
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.adapters.bmc.tls import format_url_host
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.reading import ReadingTree, failed, value
from assay.model.specs.bmc_quirks import FirmwareSpellingRule
from assay.model.specs.firmware_bundle import FirmwarePush

SIMPLE_UPDATE = "#UpdateService.SimpleUpdate"
UPLOAD_TIMEOUT_S = 300.0
FINAL_TASK_STATES = frozenset({"Completed", "Exception", "Killed", "Cancelled", "Gone"})
_SPELLING = {state.lower(): state for state in FINAL_TASK_STATES}
_FAILED_REQUEST = frozenset(range(400, 500)) - {401, 403, 408, 429}
"""What a task monitor answers once its task has failed (DSP0266); the others are about asking."""
_POLL_S = 0.2
_AT_ONCE, _ON_RESET, _APPLY_TIMES = "Immediate", "OnReset", "@Redfish.OperationApplyTimeSupport"
_PLACEHOLDER = re.compile(r"\{(\w+?)(\+1)?\}")
_HEX_BYTE = re.compile(r"(?:0x)?([0-9a-fA-F]{2})(?=[\s.:-]|$)")
_GENERIC_NAME = re.compile(r"(software|firmware)( inventory)?( item)?", re.IGNORECASE)
_NO_RULE = FirmwareSpellingRule(id=".*")


class FirmwareInventory(NamedTuple):
    """`running` and `pending` (until a reset): id → reading of the version. `kinds`: id → what its kind shares."""

    running: ReadingTree
    pending: ReadingTree
    kinds: ReadingTree


@frozen
class FirmwareEntry:
    """One entry of a firmware inventory: our id of the part and its version, "" where the BMC gives none.

    `pending` marks a version that the next reset activates, `leave_out` an entry that is no firmware of a part.
    """

    part: str
    version: str
    pending: bool = False
    leave_out: bool = False


def read_firmware_inventory(bmc: RedfishSession) -> FirmwareInventory:
    """Return the inventory. Raises AssayError where the BMC shows none.

    A part that is listed twice has one reading; it is failed where the two versions differ.
    """
    service = bmc.follow(bmc.root, "UpdateService")
    inventory = FirmwareInventory({}, {}, {})
    for item in bmc.members(bmc.follow(service, "FirmwareInventory", 1)):
        _add_item(inventory, item, bmc)
    return inventory


def _add_item(inventory: FirmwareInventory, item: Resource, bmc: RedfishSession) -> None:
    entry = normalize_firmware_entry(str(item.get("Id")), item.get("Version"), bmc.dialect.firmware)
    if entry.leave_out or (entry.pending and not entry.version):  # a pending entry without a version: none is pending
        return
    if entry.pending:
        inventory.pending[entry.part] = value(entry.version)
        return
    reading = value(entry.version) if entry.version else failed("the BMC lists this part without a version")
    other = inventory.running.get(entry.part)
    if other is not None and other != reading and "value" in other and "value" in reading:
        reading = failed(f"the BMC lists {entry.part} twice, as {other['value']} and as {entry.version}")
    elif other is not None and "value" in other:
        reading = other
    inventory.running[entry.part] = reading
    inventory.kinds[entry.part] = value(name_kind(entry.part, item))


def name_kind(part: str, item: Resource) -> str:
    """Return what parts of the same kind share: the id without its number, the name, and the SoftwareId.

    Ids may be bare numbers (HPE iLO), and ids that share letters name unlike parts (FPGAs of HPE Cray).
    """
    stem = part.rstrip("0123456789")
    name = " ".join(str(item.get("Name") or "").split())
    if _GENERIC_NAME.fullmatch(name) or name in (part, item.get("Id")):
        name = ""
    if number := part.removeprefix(stem):
        name = re.sub(rf"(?<![0-9])0*{int(number)}(?![0-9])", "#", name)
    known = name or any(char.isalpha() for char in stem)
    return " ".join(filter(None, (stem, name, str(item.get("SoftwareId") or "")))) if known else part


def normalize_firmware_entry(ident: str, version: object, rules: Sequence[FirmwareSpellingRule]) -> FirmwareEntry:
    """Return an entry by the first rule whose pattern matches its whole id, else with its id unchanged.

    Blanks around and between the words of a version are normalized.
    """
    for rule in rules:
        if match := re.fullmatch(rule.id, ident):
            text = _text(ident if rule.version_in == "id" else version)
            return FirmwareEntry(_part(rule, match), _version(rule, text), rule.pending, rule.leave_out)
    return FirmwareEntry(ident, _version(_NO_RULE, _text(version)))


def _text(version: object) -> str:
    return "" if version is None else " ".join(str(version).split())


def _part(rule: FirmwareSpellingRule, match: re.Match[str]) -> str:
    """Return the rule's part, its placeholders filled: `{n}` by the id's group n, `{n+1}` by that number plus one."""

    def fill(placeholder: re.Match[str]) -> str:
        group = match[placeholder[1]]
        return str(int(group) + 1) if placeholder[2] else group

    return _PLACEHOLDER.sub(fill, rule.part) if rule.part else match[0]


def _version(rule: FirmwareSpellingRule, text: str) -> str:
    if rule.version:
        match = re.search(rule.version, text)
        text = match["version"] if match else ""
    if rule.hex_bytes and (hex_bytes := _HEX_BYTE.findall(text)):
        text = ".".join(str(int(byte, 16)) for byte in hex_bytes)
    return re.sub(r"(?<![0-9A-Za-z])0+(?=[0-9])", "", text) if rule.unpadded else text


@frozen
class RedfishTask:
    """A task of a BMC. `state` is Redfish's TaskState, or Gone; `percent` is None where the BMC does not give it."""

    path: str
    state: str = "New"
    status: str = ""
    percent: int | None = None
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, with success or without."""
        return self.state in FINAL_TASK_STATES

    @property
    def is_success(self) -> bool:
        """Whether the BMC reports success: Completed, and not critical. A warning may only ask for a reset."""
        return self.state == "Completed" and self.status.lower() != "critical"


def push_image(bmc: RedfishSession, image: Path, how: FirmwarePush) -> RedfishTask | None:
    """Push an image and return its task, None where the BMC names none. Arguments: see `BmcClient.push_firmware`."""
    service = bmc.follow(bmc.root, "UpdateService")
    _check_image_size(bmc, service, image)
    method = _choose_push_method(bmc, service, how)
    if method == "simple":
        return _let_bmc_fetch(bmc, service["Actions"][SIMPLE_UPDATE], image)
    path = service["MultipartHttpPushUri" if method == "multipart" else "HttpPushUri"]
    return _read_named_task(bmc, path, _upload(bmc, service, path, image, method))


def _check_image_size(bmc: RedfishSession, service: Resource, image: Path) -> None:
    try:
        size = image.stat().st_size
    except OSError as error:
        raise AssayError(f"{image} cannot be read: {error.strerror}", where=bmc.where) from None
    limit = service.get("MaxImageSizeBytes")
    if limit and size > limit:
        raise AssayError(f"{image.name} has {size} bytes; the BMC takes {limit} at most", where=bmc.where)


def _choose_push_method(bmc: RedfishSession, service: Resource, preferred: FirmwarePush) -> FirmwarePush:
    offered: list[FirmwarePush] = []
    if service.get("MultipartHttpPushUri"):
        offered.append("multipart")
    if service.get("Actions", {}).get(SIMPLE_UPDATE, {}).get("target"):
        offered.append("simple")
    if service.get("HttpPushUri"):
        offered.append("http")
    if not offered:
        problem = "the update service advertises neither MultipartHttpPushUri, nor SimpleUpdate, nor HttpPushUri"
        raise AssayError(problem, where=bmc.where)
    return preferred if preferred in offered else offered[0]


def _upload(bmc: RedfishSession, service: Resource, path: str, image: Path, method: FirmwarePush) -> RestResponse:
    """Send the image: with its parameters as the two parts of a Redfish multipart push, or as it is."""
    content, octets = image.read_bytes(), "application/octet-stream"
    if method == "http":
        options = service.get("HttpPushUriOptions") or {}
        apply_time = (options.get("HttpPushUriApplyTime") or {}).get("ApplyTime", _AT_ONCE)
        if apply_time not in (_AT_ONCE, _ON_RESET):
            body = {"HttpPushUriOptions": {"HttpPushUriApplyTime": {"ApplyTime": _AT_ONCE}}}
            patch_resource(bmc, service["@odata.id"], body)
        return bmc.post(path, content, {"Content-Type": octets}, timeout_s=UPLOAD_TIMEOUT_S)
    parameters = _choose_apply_time(service.get(f"MultipartHttpPushUri{_APPLY_TIMES}"))
    parts = [
        ("UpdateParameters", (None, json.dumps(parameters), "application/json")),
        ("UpdateFile", (image.name, content, octets)),
    ]
    return bmc.post(path, parts, {"Content-Type": "multipart/form-data"}, timeout_s=UPLOAD_TIMEOUT_S)


def _choose_apply_time(support: Resource | None) -> dict[str, str]:
    """Return when the BMC shall apply the image: at once, or at the reset that follows, whichever it offers."""
    offered = (support or {}).get("SupportedValues") or [_AT_ONCE]
    chosen = next((when for when in (_AT_ONCE, _ON_RESET) if when in offered), "")
    return {"@Redfish.OperationApplyTime": chosen} if chosen else {}


def _let_bmc_fetch(bmc: RedfishSession, action: Resource, image: Path) -> RedfishTask | None:
    """Let the BMC fetch the image from a server here, which runs until the download or task is over."""
    support = action.get(_APPLY_TIMES)
    with ImageServer(image, bmc.own_address()) as server:
        body = {"ImageURI": server.uri, "TransferProtocol": "HTTP", **(_choose_apply_time(support) if support else {})}
        path, ends_at = action["target"], time.monotonic() + UPLOAD_TIMEOUT_S
        task = _read_named_task(bmc, path, bmc.post(path, body, timeout_s=UPLOAD_TIMEOUT_S))
        while task and not task.is_over and not server.downloaded.wait(_POLL_S) and time.monotonic() < ends_at:
            with contextlib.suppress(AssayError):  # the BMC has taken the order, and may be slow to say how far it is
                task = read_task(bmc, task.path)
        if task is None:
            server.downloaded.wait(UPLOAD_TIMEOUT_S)
        return task


def _read_named_task(bmc: RedfishSession, asked: str, response: RestResponse) -> RedfishTask | None:
    """Return the task that a response of the path `asked` names, in its body or by its header Location.

    The image is taken, so nothing that is read now may raise.
    """
    content: Resource = {}
    with contextlib.suppress(AssayError):
        content = bmc.read_body(response, asked) if response.text.strip() else {}
    named = content.get("@odata.id") if "TaskState" in content or len(content) == 1 else None
    location = named or response.task_location
    if not location:
        return None
    # it may be absolute, with a name that the BMC has for itself: only its path is asked for
    place = urlsplit(urljoin(asked, str(location)))
    path = f"{place.path}?{place.query}" if place.query else place.path
    if "TaskState" in content:
        return parse_task(content, path)
    try:
        return read_task(bmc, path)
    except AssayError:
        return RedfishTask(path)


def read_task(bmc: RedfishSession, path: str) -> RedfishTask:
    """Read one task, or its monitor, which says by its status how far the task is (DSP0266). Raises AssayError.

    The state is Gone where the BMC no longer knows it.
    """
    response = bmc.request("get", path)
    if response.status in (404, 410):
        return RedfishTask(path=path, state="Gone", message="the BMC no longer knows this task")
    if response.status not in (200, 201, 202, 204):
        error = error_for_response(response, "GET", path, bmc.where)
        if response.status in _FAILED_REQUEST:
            return RedfishTask(path=path, state="Exception", message=error.what)
        raise error
    content = bmc.read_body(response, path) if response.text.strip() else {}
    if "TaskState" in content or "#Task." in str(content.get("@odata.type")):
        return parse_task(content, path)
    if len(content) == 1 and content.get("@odata.id", path) != path:
        return read_task(bmc, str(content["@odata.id"]))
    return RedfishTask(path=path, state="Running" if response.status == 202 else "Completed")


def parse_task(resource: Mapping[str, Any], path: str = "") -> RedfishTask:
    """Return the task in a Redfish Task resource, at `path` unless it names itself."""
    last, state = list_task_messages(resource)[-1:], str(resource.get("TaskState") or "New")
    return RedfishTask(
        path=str(resource.get("@odata.id") or path),
        state=_SPELLING.get(state.lower(), state),
        status=str(resource.get("TaskStatus") or ""),
        percent=resource.get("PercentComplete"),
        message="".join(str(message.get("Message") or "") for message in last),
    )


def list_task_messages(resource: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages of a Task, oldest first, without entries that are no message."""
    messages = resource.get("Messages")
    return [message for message in messages if isinstance(message, Mapping)] if isinstance(messages, list) else []


class _Ipv6Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6


class ImageServer:
    """Serves `image` alone over HTTP on `address`, at a path that cannot be guessed; `uri` is its address.

    `downloaded` is set when a client has read the whole image. Use it as a context manager.
    """

    def __init__(self, image: Path, address: str) -> None:
        self.downloaded = Event()
        path = f"/{secrets.token_hex(8)}/{image.name}"
        server = _Ipv6Server if ":" in address else ThreadingHTTPServer
        self._server = server((address, 0), _handler(image, path, self.downloaded))
        self._server.daemon_threads = True
        self.uri = f"http://{format_url_host(address)}:{self._server.server_port}{path}"

    def __enter__(self) -> ImageServer:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(image: Path, path: str, downloaded: Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != path:
                self.send_error(404)
                return
            self._head()
            with image.open("rb") as content:
                shutil.copyfileobj(content, self.wfile)
            downloaded.set()

        def do_HEAD(self) -> None:
            self._head()

        def _head(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(image.stat().st_size))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the signature is http.server's
            """Log nothing: standard error belongs to the caller."""

    return Handler
