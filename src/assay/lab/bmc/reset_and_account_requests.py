"""Handlers of requests that change something: resets, boot override, event log, logins."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from starlette.responses import Response

from assay.lab import virtual_node_state
from assay.lab.bmc import power_transitions
from assay.lab.bmc.account_service import ACCOUNTS, SESSIONS
from assay.lab.bmc.authentication import ROLES, BmcAccount
from assay.lab.bmc.computer_system import BOOT_ENABLED, BOOT_TARGETS, POWER_RESTORE_POLICIES
from assay.lab.bmc.network_start import start_from_network
from assay.lab.bmc.odata_responses import no_content_answer, resource_answer
from assay.lab.bmc.redfish_errors import (
    RedfishErrorResponse,
    malformed_body,
    not_found,
    not_in_list,
    not_writable,
    password_change_required,
    state_conflict,
)
from assay.lab.bmc.resource_tree import REDFISH_ROOT
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.virtual_bmc import BmcRequest, require_string
from assay.lab.virtual_node_state import VirtualNodeState

BOOT_OVERRIDE_PROPERTIES = {
    "BootSourceOverrideEnabled": ("enabled", BOOT_ENABLED),
    "BootSourceOverrideTarget": ("target", BOOT_TARGETS),
    "BootSourceOverrideMode": ("mode", ["UEFI"]),
}


async def reset_system(call: BmcRequest) -> Response:
    """ComputerSystem.Reset."""
    reset_type = (await call.read_parameters({"ResetType"}, {"ResetType"}))["ResetType"]
    if reset_type not in power_transitions.RESET_TYPES:
        raise not_in_list(reset_type, "ResetType")

    def edit(state: VirtualNodeState, now: datetime) -> VirtualNodeState:
        try:
            return power_transitions.reset_node(state, cast(power_transitions.ResetType, reset_type), now)
        except power_transitions.ResetNotPossible as error:
            raise state_conflict(str(error)) from None

    state = await call.bmc.change(edit)
    if state.get("network_start"):
        call.bmc.starting = asyncio.create_task(start_from_network(call.bmc, state["boot"]["id"]))
    if reset_type == "FullPowerCycle":
        call.bmc.logins.sessions.clear()
    return no_content_answer()


async def reset_manager(call: BmcRequest) -> Response:
    """Manager.Reset. All sessions end."""
    reset_type = (await call.read_parameters({"ResetType"})).get("ResetType", "GracefulRestart")
    if reset_type not in power_transitions.BMC_RESET_TYPES:
        raise not_in_list(reset_type, "ResetType")
    await call.bmc.change(power_transitions.reset_bmc)
    call.bmc.logins.sessions.clear()
    return no_content_answer()


async def clear_log(call: BmcRequest) -> Response:
    """LogService.ClearLog."""
    await call.bmc.change(virtual_node_state.with_sel_cleared)
    return no_content_answer()


async def patch_system(call: BmcRequest) -> Response:
    """PATCH the system: the boot override, the asset tag, and what happens when power comes back."""
    plain = await call.read_parameters(
        {"Boot", *call.view.state, *RESOURCE_TREE.read(call.view, call.request.url.path.rstrip("/"))}
    )
    if frozen := next((name for name in plain if name not in ("AssetTag", "Boot", "PowerRestorePolicy")), None):
        raise not_writable(frozen)
    override = _boot_override(plain["Boot"]) if "Boot" in plain else {}
    policy = plain.get("PowerRestorePolicy", call.view.state["box"]["power_restore"])
    if policy not in POWER_RESTORE_POLICIES:
        raise not_in_list(policy, "PowerRestorePolicy")
    tag = {"asset_tag": require_string(plain, "AssetTag")} if "AssetTag" in plain else {}

    def edit(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        boot = {"boot_override": {**(state.get("boot_override") or {}), **override}} if override else {}
        return {**state, **boot, **tag, "box": {**state["box"], "power_restore": policy}}

    state = await call.bmc.change(edit)
    return resource_answer(RESOURCE_TREE.read(replace(call.view, state=state), call.request.url.path.rstrip("/")))


def _boot_override(boot: Any) -> dict[str, str]:
    if not isinstance(boot, dict) or not boot:
        raise malformed_body("Boot must be an object with the properties to set")
    override = {}
    for name, value in boot.items():
        if name not in BOOT_OVERRIDE_PROPERTIES:
            raise not_writable(f"Boot/{name}")
        key, allowed = BOOT_OVERRIDE_PROPERTIES[name]
        if value not in allowed:
            raise not_in_list(value, name)
        override[key] = value
    return override


async def log_in(call: BmcRequest) -> Response:
    """POST to Sessions: returns the token in X-Auth-Token and the session's path in Location."""
    plain = await call.read_parameters({"UserName", "Password", "Context", "SessionType"}, ("UserName", "Password"))
    session = call.view.logins.log_in(require_string(plain, "UserName"), require_string(plain, "Password"))
    path = f"{REDFISH_ROOT}{SESSIONS}/{session.id}"
    body = RESOURCE_TREE.read(call.view, path)
    if session.account.must_change:
        body |= {"@Message.ExtendedInfo": password_change_required(account_path(session.account)).infos}
    return resource_answer(body, 201, Location=path, X_Auth_Token=session.token)


async def log_out(call: BmcRequest) -> Response:
    """DELETE a session: one's own, or any with the privilege ConfigureUsers."""
    session = call.view.logins.live_sessions().get(call.ids[0])
    if session is None:
        raise not_found(call.request.url.path)
    if call.account is not session.account:
        require_privilege(call, "ConfigureUsers")
    del call.view.logins.sessions[session.id]
    return no_content_answer()


def account_path(account: BmcAccount) -> str:
    """Return the path of an account."""
    return f"{REDFISH_ROOT}{ACCOUNTS}/{account.id}"


def require_privilege(call: BmcRequest, privilege: str) -> None:
    """Raise a 403 unless the caller has the privilege."""
    if call.account is None or privilege not in ROLES[call.account.role]:
        raise RedfishErrorResponse(403, "InsufficientPrivilege", f"This needs the privilege {privilege}")
