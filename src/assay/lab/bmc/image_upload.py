"""The two ways of bringing an image: the BMC fetches it (SimpleUpdate), or it is pushed as multipart/form-data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes, policy
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from assay.lab.bmc import firmware_flash
from assay.lab.bmc.outbound_http import OutboundCallFailed, fetch_image
from assay.lab.bmc.power_transitions import is_task_running
from assay.lab.bmc.redfish_errors import RedfishErrorResponse, malformed_body, missing_property, not_in_list
from assay.lab.bmc.resource_tree import REDFISH_ROOT, ResourceView
from assay.lab.bmc.resources import update_task_services
from assay.lab.bmc.resources.service_root import RESOURCE_TREE
from assay.lab.bmc.resources.update_task_services import INVENTORY
from assay.lab.bmc.responses import json_answer, resource_answer
from assay.lab.bmc.virtual_bmc import BmcRequest, StateEdit, parse_json_object, require_string
from assay.lab.world import VirtualNodeState

FORM_BYTES = 64 << 10
APPLY_TIME = "@Redfish.OperationApplyTime"


async def simple_update(call: BmcRequest) -> Response:
    """UpdateService.SimpleUpdate: GET the image from ImageURI, then write it. A fetch that fails is a failed task."""
    plain = await call.read_parameters({"ImageURI", "TransferProtocol", "Targets", APPLY_TIME}, ("ImageURI",))
    targets, uri = _targets(plain), require_string(plain, "ImageURI")
    if "://" not in uri:
        uri = f"{require_string({'TransferProtocol': 'HTTP', **plain}, 'TransferProtocol').lower()}://{uri}"
    if urlsplit(uri).scheme not in {"http", "https"}:
        raise not_in_list(uri, "ImageURI")
    try:
        content = await fetch_image(uri, firmware_flash.MAX_IMAGE_BYTES)
    except OutboundCallFailed as error:
        why = f"no image from {uri}: {error}"
        return await _accepted(call, lambda state, now: firmware_flash.start_refused_flash(state, "", why, now))
    return await _begin(call, content, targets)


async def push_multipart(call: BmcRequest) -> Response:
    """MultipartHttpPushUri: part UpdateParameters is JSON, part UpdateFile the image."""
    parts = parse_multipart_form(
        call.request.headers.get("content-type", ""), await call.read_body(firmware_flash.MAX_IMAGE_BYTES + FORM_BYTES)
    )
    if "UpdateFile" not in parts:
        raise missing_property("UpdateFile")
    if "UpdateParameters" not in parts:
        raise missing_property("UpdateParameters")
    return await _begin(call, parts["UpdateFile"], _targets(parse_json_object(parts["UpdateParameters"])))


async def read_task_monitor(view: ResourceView, ident: str) -> Response:
    """GET a task monitor: 202 with the task while it runs, then how the whole operation ended."""
    entry = update_task_services.find_task(view, ident)
    if error := update_task_services.task_failure(entry):
        raise error
    if not is_task_running(entry):
        return json_answer(RESOURCE_TREE.read(view, f"{REDFISH_ROOT}{update_task_services.TASKS}/{ident}"))
    return _under_way(view, ident)


def parse_multipart_form(content_type: str, content: bytes) -> dict[str, bytes]:
    """Return the parts of a multipart/form-data body by name, byte for byte. Raises a 400 or 415."""
    if not content_type.lower().startswith("multipart/form-data"):
        raise RedfishErrorResponse(415, "HeaderInvalid", "Only multipart/form-data is taken here", "Content-Type")
    head = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    message = message_from_bytes(head + content, policy=policy.HTTP)
    if not message.is_multipart() or message.defects:
        raise malformed_body("it is no multipart/form-data")
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)  # type: ignore[misc]
        for part in message.iter_parts()
    }


async def _begin(call: BmcRequest, content: bytes, targets: Sequence[str]) -> Response:
    """Write the image, or let the task say why not. Raises a 409 while the same component is being written."""

    def edit(state: VirtualNodeState, now: datetime) -> VirtualNodeState:
        try:
            return firmware_flash.start_flash(state, firmware_flash.read_image(content), targets, now)
        except firmware_flash.ImageRefused as error:
            return firmware_flash.start_refused_flash(state, hashlib.sha256(content).hexdigest(), str(error), now)
        except firmware_flash.ComponentBusy as error:
            raise RedfishErrorResponse(
                409, "UpdateInProgress", f"An update is in progress: {error}", Retry_After="1"
            ) from None

    return await _accepted(call, edit)


async def _accepted(call: BmcRequest, edit: StateEdit) -> Response:
    state = await call.bmc.change(edit)
    return _under_way(replace(call.view, state=state), state["tasks"][-1]["id"])


def _under_way(view: ResourceView, ident: str) -> Response:
    body = RESOURCE_TREE.read(view, f"{REDFISH_ROOT}{update_task_services.TASKS}/{ident}")
    return resource_answer(body, 202, Location=f"{update_task_services.MONITORS}/{ident}", Retry_After="1")


def _targets(parameters: dict[str, Any]) -> list[str]:
    """Return the inventory ids that `Targets` names.

    Raises a 400 for anything that is no link to the inventory, and for another apply time than at once.
    """
    if (when := parameters.get(APPLY_TIME, "Immediate")) != "Immediate":
        raise not_in_list(when, APPLY_TIME)
    prefix, plain = f"{REDFISH_ROOT}{INVENTORY}/", parameters.get("Targets") or []
    for target in plain if isinstance(plain, list) else [plain]:
        if not isinstance(target, str) or not target.startswith(prefix):
            raise not_in_list(json.dumps(target), "Targets")
    return [target.removeprefix(prefix) for target in plain]
