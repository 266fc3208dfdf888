"""Brings a firmware image to a BMC, the way that its update service advertises."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redfish.rest.v1 import RestResponse

from assay.model.errors import Trouble
from assay.model.firmware import Push
from assay.observe.bmc_firmware import read_firmware
from assay.observe.offer import Offer
from assay.observe.session import Resource, Session
from assay.observe.task import Task, as_task

if TYPE_CHECKING:
    from assay.observe.bmc import Bmc

SIMPLE = "#UpdateService.SimpleUpdate"
UPLOAD_S = 300.0
_POLL_S = 0.2


def push_image(bmc: Bmc, image: Path, how: Push, targets: Sequence[str], uri: str) -> Task | None:
    """See `Bmc.push`."""
    service = bmc.follow(bmc.root, "UpdateService")
    _fits(bmc, service, image)
    paths = _target_paths(bmc, targets)
    if _way(bmc, service, how) == "multipart":
        return _task_of(bmc, _upload(bmc, service["MultipartHttpPushUri"], image, paths))
    return _fetched(bmc, service["Actions"][SIMPLE]["target"], image, paths, uri)


def _fits(bmc: Session, service: Resource, image: Path) -> None:
    try:
        size = image.stat().st_size
    except OSError as error:
        raise Trouble(f"{image} cannot be read: {error.strerror}", where=bmc.where) from None
    limit = service.get("MaxImageSizeBytes")
    if limit and size > limit:
        raise Trouble(f"{image.name} has {size} bytes; the BMC takes {limit} at most", where=bmc.where)


def _way(bmc: Session, service: Resource, wish: Push) -> Push:
    offered: list[Push] = []
    if service.get("MultipartHttpPushUri"):
        offered.append("multipart")
    if service.get("Actions", {}).get(SIMPLE, {}).get("target"):
        offered.append("simple")
    if not offered:
        raise Trouble("the update service advertises neither MultipartHttpPushUri nor SimpleUpdate", where=bmc.where)
    return wish if wish in offered else offered[0]


def _target_paths(bmc: Session, targets: Sequence[str]) -> list[str]:
    """Return the resources of inventory ids. Raises Trouble for an id that the BMC does not list."""
    if not targets:
        return []
    paths = read_firmware(bmc).paths
    missing = [target for target in targets if target not in paths]
    if missing:
        raise Trouble(f"the firmware inventory has no {', '.join(missing)}", where=bmc.where)
    return [paths[target] for target in targets]


def _upload(bmc: Session, path: str, image: Path, targets: Sequence[str]) -> RestResponse:
    """Send image and parameters as the two parts that the standard asks for, each with its type."""
    parameters: dict[str, Any] = {"@Redfish.OperationApplyTime": "Immediate"}
    if targets:
        parameters["Targets"] = list(targets)
    parts = [
        ("UpdateParameters", (None, json.dumps(parameters), "application/json")),
        ("UpdateFile", (image.name, image.read_bytes(), "application/octet-stream")),
    ]
    return bmc.post(path, parts, {"Content-Type": "multipart/form-data"}, timeout_s=UPLOAD_S)


def _fetched(bmc: Bmc, path: str, image: Path, targets: Sequence[str], uri: str) -> Task | None:
    """Let the BMC fetch the image: from `uri`, or from us until it has it or its task is over."""
    if uri:
        return _task_of(bmc, bmc.post(path, _simple(uri, targets), timeout_s=UPLOAD_S))
    with Offer(image, bmc.own_address()) as offer:
        task = _task_of(bmc, bmc.post(path, _simple(offer.uri, targets), timeout_s=UPLOAD_S))
        while task is not None and not task.over and not offer.taken.is_set():
            time.sleep(_POLL_S)
            task = bmc.task(task.path)
        if task is None:
            offer.taken.wait(UPLOAD_S)
        return task


def _simple(uri: str, targets: Sequence[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"ImageURI": uri, "TransferProtocol": uri.partition(":")[0].upper()}
    return {**body, "Targets": list(targets)} if targets else body


def _task_of(bmc: Bmc, response: RestResponse) -> Task | None:
    """Return the task that a response names: in its body, else by its Location."""
    content = bmc.body(response, "the update service") if response.text.strip() else {}
    if "TaskState" in content:
        return as_task(content)
    location = response.task_location
    return bmc.task(location) if location else None
