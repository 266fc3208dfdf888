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

from assay.lab.bmc import flash, tasks
from assay.lab.bmc.answers import json_answer, resource_answer
from assay.lab.bmc.errors import RedfishError, malformed, missing, not_in_list
from assay.lab.bmc.machine import Call, Edit, json_object, text
from assay.lab.bmc.outward import Unreachable, fetch
from assay.lab.bmc.root import TREE
from assay.lab.bmc.settle import running
from assay.lab.bmc.tree import ROOT, View
from assay.lab.bmc.update import INVENTORY
from assay.lab.world import State

FORM_BYTES = 64 << 10
APPLY_TIME = "@Redfish.OperationApplyTime"


async def simple_update(call: Call) -> Response:
    """UpdateService.SimpleUpdate: GET the image from ImageURI, then write it. A fetch that fails is a failed task."""
    plain = await call.parameters({"ImageURI", "TransferProtocol", "Targets", APPLY_TIME}, ("ImageURI",))
    targets, uri = _targets(plain), text(plain, "ImageURI")
    if "://" not in uri:
        uri = f"{text({'TransferProtocol': 'HTTP', **plain}, 'TransferProtocol').lower()}://{uri}"
    if urlsplit(uri).scheme not in {"http", "https"}:
        raise not_in_list(uri, "ImageURI")
    try:
        content = await fetch(uri, flash.MAX_IMAGE_BYTES)
    except Unreachable as error:
        why = f"no image from {uri}: {error}"
        return await _accepted(call, lambda state, now: flash.start_refused(state, "", why, now))
    return await _begin(call, content, targets)


async def push(call: Call) -> Response:
    """MultipartHttpPushUri: part UpdateParameters is JSON, part UpdateFile the image."""
    parts = form(call.request.headers.get("content-type", ""), await call.content(flash.MAX_IMAGE_BYTES + FORM_BYTES))
    if "UpdateFile" not in parts:
        raise missing("UpdateFile")
    if "UpdateParameters" not in parts:
        raise missing("UpdateParameters")
    return await _begin(call, parts["UpdateFile"], _targets(json_object(parts["UpdateParameters"])))


async def monitor(view: View, ident: str) -> Response:
    """GET a task monitor: 202 with the task while it runs, then how the whole operation ended."""
    entry = tasks.find(view, ident)
    if error := tasks.failure(entry):
        raise error
    if not running(entry):
        return json_answer(TREE.read(view, f"{ROOT}{tasks.TASKS}/{ident}"))
    return _under_way(view, ident)


def form(content_type: str, content: bytes) -> dict[str, bytes]:
    """Return the parts of a multipart/form-data body by name, byte for byte. Raises a 400 or 415."""
    if not content_type.lower().startswith("multipart/form-data"):
        raise RedfishError(415, "HeaderInvalid", "Only multipart/form-data is taken here", "Content-Type")
    head = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    message = message_from_bytes(head + content, policy=policy.HTTP)
    if not message.is_multipart() or message.defects:
        raise malformed("it is no multipart/form-data")
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)  # type: ignore[misc]
        for part in message.iter_parts()
    }


async def _begin(call: Call, content: bytes, targets: Sequence[str]) -> Response:
    """Write the image, or let the task say why not. Raises a 409 while the same component is being written."""

    def edit(state: State, now: datetime) -> State:
        try:
            return flash.start(state, flash.read_image(content), targets, now)
        except flash.Refused as error:
            return flash.start_refused(state, hashlib.sha256(content).hexdigest(), str(error), now)
        except flash.Busy as error:
            raise RedfishError(409, "UpdateInProgress", f"An update is in progress: {error}", Retry_After="1") from None

    return await _accepted(call, edit)


async def _accepted(call: Call, edit: Edit) -> Response:
    state = await call.machine.change(edit)
    return _under_way(replace(call.view, state=state), state["tasks"][-1]["id"])


def _under_way(view: View, ident: str) -> Response:
    body = TREE.read(view, f"{ROOT}{tasks.TASKS}/{ident}")
    return resource_answer(body, 202, Location=f"{tasks.MONITORS}/{ident}", Retry_After="1")


def _targets(parameters: dict[str, Any]) -> list[str]:
    """Return the inventory ids that `Targets` names.

    Raises a 400 for anything that is no link to the inventory, and for another apply time than at once.
    """
    if (when := parameters.get(APPLY_TIME, "Immediate")) != "Immediate":
        raise not_in_list(when, APPLY_TIME)
    prefix, plain = f"{ROOT}{INVENTORY}/", parameters.get("Targets") or []
    for target in plain if isinstance(plain, list) else [plain]:
        if not isinstance(target, str) or not target.startswith(prefix):
            raise not_in_list(json.dumps(target), "Targets")
    return [target.removeprefix(prefix) for target in plain]
