"""Handlers of requests that change settings of the BMC itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from assay.lab.bmc.manager_log_services import NETWORK_PROTOCOL, NTP_PLACES, network_protocol
from assay.lab.bmc.odata_responses import resource_answer
from assay.lab.bmc.redfish_errors import RedfishErrorResponse, malformed_body, not_writable
from assay.lab.bmc.resource_tree import REDFISH_ROOT
from assay.lab.bmc.virtual_bmc import BmcRequest
from assay.lab.virtual_node_state import VirtualNodeState


async def patch_network_protocol(call: BmcRequest) -> Response:
    """PATCH the network protocols: only NTP can be set. With `fails.settings`, the BMC takes it and forgets it."""
    here = network_protocol(call.view)
    plain = await call.read_parameters(set(here))
    if frozen := next((name for name in plain if name != "NTP"), None):
        raise not_writable(frozen)
    ntp = _read_ntp(plain.get("NTP"), here["NTP"]["NTPServers"])

    def edit(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        if state["fails"].get("settings"):
            return state
        return {**state, "box": {**state["box"], "ntp": {**state["box"]["ntp"], **ntp}}}

    view = replace(call.view, state=await call.bmc.change(edit))
    return resource_answer({"@odata.id": REDFISH_ROOT + NETWORK_PROTOCOL, **network_protocol(view)})


def _read_ntp(sent: Any, servers: list[str | None]) -> dict[str, Any]:
    if not isinstance(sent, dict) or not sent:
        raise malformed_body("NTP must be an object with the properties to set")
    ntp: dict[str, Any] = {}
    for name, content in sent.items():
        if name == "ProtocolEnabled":
            if not isinstance(content, bool):
                raise _wrong_type(f"NTP/{name}", content)
            ntp["enabled"] = content
        elif name == "NTPServers":
            ntp["servers"] = _merge_array(f"NTP/{name}", content, servers)
        else:
            raise not_writable(f"NTP/{name}")
    return ntp


def _merge_array(name: str, sent: Any, before: list[str | None]) -> list[str]:
    """Return an array after a PATCH: an empty object keeps its place's entry, null removes it, and no more stay."""
    if not isinstance(sent, list) or not all(entry is None or entry == {} or isinstance(entry, str) for entry in sent):
        raise _wrong_type(name, sent)
    if len(sent) > NTP_PLACES:
        raise RedfishErrorResponse(400, "ArraySizeTooLong", f"{name} has {NTP_PLACES} places", name, str(NTP_PLACES))
    kept = [*before, *[None] * len(sent)]
    return [entry for new, old in zip(sent, kept, strict=False) if (entry := old if new == {} else new)]


def _wrong_type(name: str, content: object) -> RedfishErrorResponse:
    return RedfishErrorResponse(400, "PropertyValueTypeError", f"{name} has another type", str(content), name)
