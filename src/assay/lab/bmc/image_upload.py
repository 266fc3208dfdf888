"""The two ways to upload an image: the BMC fetches it (SimpleUpdate), or the client pushes multipart/form-data."""

from __future__ import annotations

import asyncio
import hashlib
import json
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes, policy
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from assay.lab.bmc import firmware_flash
from assay.lab.bmc.authentication import RedfishErrorResponse, malformed_body, missing_property, not_in_list
from assay.lab.bmc.firmware_flash import INVENTORY, is_task_running
from assay.lab.bmc.odata_responses import json_answer, resource_answer
from assay.lab.bmc.resource_tree import REDFISH_ROOT, ResourceView
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.virtual_bmc import BmcRequest, StateEdit, parse_json_object, require_string
from assay.lab.virtual_node_state import VirtualNodeState

FORM_BYTES = 64 << 10
FETCH_DEADLINE_S = 10.0
_FETCHERS = ThreadPoolExecutor(32, thread_name_prefix="bmc-fetch")
"""A fetch that hangs must not delay changes of state."""
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
APPLY_TIME = "@Redfish.OperationApplyTime"


async def simple_update(call: BmcRequest) -> Response:
    """UpdateService.SimpleUpdate: fetch the image from ImageURI, then write it. A failed fetch gives a failed task."""
    plain = await call.read_parameters({"ImageURI", "TransferProtocol", "Targets", APPLY_TIME}, ("ImageURI",))
    targets = _targets(plain)
    uri = require_string(plain, "ImageURI")
    if "://" not in uri:
        uri = f"{require_string({'TransferProtocol': 'HTTP', **plain}, 'TransferProtocol').lower()}://{uri}"
    if urlsplit(uri).scheme not in {"http", "https"}:
        raise not_in_list(uri, "ImageURI")
    try:
        content = await asyncio.get_running_loop().run_in_executor(_FETCHERS, _fetch, uri)
    except (OSError, HTTPException, ValueError) as error:
        reason = f"no image from {uri}: {type(error).__name__}: {error}"
        return await _accept(call, lambda state, now: firmware_flash.start_refused_flash(state, "", reason, now))
    return await _start_flash(call, content, targets)


def _fetch(uri: str) -> bytes:
    """GET an image, directly and never through a proxy. Raises ValueError for one that is too large."""
    with _DIRECT.open(uri, timeout=FETCH_DEADLINE_S) as answer:
        content: bytes = answer.read(firmware_flash.MAX_IMAGE_BYTES + 1)
    if len(content) > firmware_flash.MAX_IMAGE_BYTES:
        raise ValueError(f"it is larger than {firmware_flash.MAX_IMAGE_BYTES} bytes")
    return content


async def push_multipart(call: BmcRequest) -> Response:
    """MultipartHttpPushUri: the part UpdateParameters is JSON, the part UpdateFile is the image."""
    parts = parse_multipart_form(
        call.request.headers.get("content-type", ""), await call.read_body(firmware_flash.MAX_IMAGE_BYTES + FORM_BYTES)
    )
    if "UpdateFile" not in parts:
        raise missing_property("UpdateFile")
    if "UpdateParameters" not in parts:
        raise missing_property("UpdateParameters")
    return await _start_flash(call, parts["UpdateFile"], _targets(parse_json_object(parts["UpdateParameters"])))


async def read_task_monitor(view: ResourceView, ident: str) -> Response:
    """GET a task monitor: 202 with the task while it runs, then the result of the whole operation."""
    entry = firmware_flash.find_task(view, ident)
    if error := firmware_flash.task_failure(entry):
        raise error
    if not is_task_running(entry):
        return json_answer(RESOURCE_TREE.read(view, f"{REDFISH_ROOT}{firmware_flash.TASKS}/{ident}"))
    return _accepted_answer(view, ident)


def parse_multipart_form(content_type: str, content: bytes) -> dict[str, bytes]:
    """Return the parts of a multipart/form-data body by name, byte for byte. Raises a 400 or 415."""
    if not content_type.lower().startswith("multipart/form-data"):
        raise RedfishErrorResponse(415, "HeaderInvalid", "Only multipart/form-data is accepted here", "Content-Type")
    head = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    message = message_from_bytes(head + content, policy=policy.HTTP)
    if not message.is_multipart() or message.defects:
        raise malformed_body("it is not multipart/form-data")
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)  # type: ignore[misc]
        for part in message.iter_parts()
    }


async def _start_flash(call: BmcRequest, content: bytes, targets: Sequence[str]) -> Response:
    """Start to write the image; an unfit image gives a failed task. Raises a 409 while the component is busy."""

    def edit(state: VirtualNodeState, now: datetime) -> VirtualNodeState:
        try:
            return firmware_flash.start_flash(state, firmware_flash.read_image(content), targets, now)
        except firmware_flash.ImageRefused as error:
            return firmware_flash.start_refused_flash(state, hashlib.sha256(content).hexdigest(), str(error), now)
        except firmware_flash.ComponentBusy as error:
            raise RedfishErrorResponse(
                409, "UpdateInProgress", f"An update is in progress: {error}", Retry_After="1"
            ) from None

    return await _accept(call, edit)


async def _accept(call: BmcRequest, edit: StateEdit) -> Response:
    state = await call.bmc.change(edit)
    return _accepted_answer(replace(call.view, state=state), state["tasks"][-1]["id"])


def _accepted_answer(view: ResourceView, ident: str) -> Response:
    body = RESOURCE_TREE.read(view, f"{REDFISH_ROOT}{firmware_flash.TASKS}/{ident}")
    return resource_answer(body, 202, Location=f"{firmware_flash.MONITORS}/{ident}", Retry_After="1")


def _targets(parameters: dict[str, Any]) -> list[str]:
    """Return the inventory ids of `Targets`.

    Raises a 400 for a target outside the firmware inventory, and for any apply time but Immediate.
    """
    if (when := parameters.get(APPLY_TIME, "Immediate")) != "Immediate":
        raise not_in_list(when, APPLY_TIME)
    prefix = f"{REDFISH_ROOT}{INVENTORY}/"
    plain = parameters.get("Targets") or []
    for target in plain if isinstance(plain, list) else [plain]:
        if not isinstance(target, str) or not target.startswith(prefix):
            raise not_in_list(json.dumps(target), "Targets")
    return [target.removeprefix(prefix) for target in plain]
