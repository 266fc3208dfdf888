"""Handlers of requests that change something: resets, boot override, event log, settings of the BMC, logins, accounts.

Also subscriptions. Accounts are part of the node's state on disk.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlsplit

from starlette.responses import Response

from assay.lab import virtual_node_state
from assay.lab.bmc import power_transitions
from assay.lab.bmc.authentication import (
    ROLES,
    BmcAccount,
    RedfishErrorResponse,
    digest_password,
    malformed_body,
    not_found,
    not_in_list,
    not_writable,
    password_change_required,
    state_conflict,
)
from assay.lab.bmc.computer_system import BOOT_ENABLED, BOOT_TARGETS, POWER_RESTORE_POLICIES
from assay.lab.bmc.network_start import start_from_network
from assay.lab.bmc.odata_responses import no_content_answer, resource_answer
from assay.lab.bmc.resource_tree import REDFISH_ROOT
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.services import (
    ACCOUNTS,
    NETWORK_PROTOCOL,
    NTP_PLACES,
    SESSIONS,
    SUBSCRIPTIONS,
    SYSLOG_PROTOCOLS,
    network_protocol,
)
from assay.lab.bmc.virtual_bmc import BmcRequest, require_string
from assay.lab.virtual_node_state import VirtualNodeState

BOOT_OVERRIDE_PROPERTIES = {
    "BootSourceOverrideEnabled": ("enabled", BOOT_ENABLED),
    "BootSourceOverrideTarget": ("target", BOOT_TARGETS),
    "BootSourceOverrideMode": ("mode", ["UEFI"]),
}
MIN_PASSWORD_CHARS = 8
WRITABLE = {"UserName", "Password", "RoleId", "Enabled", "Locked"}


async def patch_network_protocol(call: BmcRequest) -> Response:
    """PATCH the network protocols: NTP and IPMI can be set. With `fails.settings`, the BMC takes it and forgets it."""
    here = network_protocol(call.view)
    plain = await call.read_parameters(set(here))
    if frozen := next((name for name in plain if name not in ("NTP", "IPMI")), None):
        raise not_writable(frozen)
    ntp = _read_ntp(plain["NTP"], here["NTP"]["NTPServers"]) if "NTP" in plain else {}
    ipmi = {"ipmi": _read_ipmi(plain["IPMI"])} if "IPMI" in plain else {}

    def edit(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        if state["fails"].get("settings"):
            return state
        return {**state, "box": {**state["box"], **ipmi, "ntp": {**state["box"]["ntp"], **ntp}}}

    view = replace(call.view, state=await call.bmc.change(edit))
    return resource_answer({"@odata.id": REDFISH_ROOT + NETWORK_PROTOCOL, **network_protocol(view)})


def _read_ipmi(sent: Any) -> bool:
    if not isinstance(sent, dict) or set(sent) != {"ProtocolEnabled"}:
        raise malformed_body("IPMI must be an object with ProtocolEnabled")
    if not isinstance(sent["ProtocolEnabled"], bool):
        raise _wrong_type("IPMI/ProtocolEnabled", sent["ProtocolEnabled"])
    return sent["ProtocolEnabled"]


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


async def create_account(call: BmcRequest) -> Response:
    """POST to Accounts."""
    known = call.view.logins.accounts
    plain = await call.read_parameters(WRITABLE | {"AccountTypes"}, ("UserName", "Password", "RoleId"))
    if any(entry.user == plain["UserName"] for entry in known.values()):
        raise RedfishErrorResponse(400, "ResourceAlreadyExists", "There is an account with this name", "UserName")
    ident = str(max(map(int, known)) + 1)
    return await _store(call, BmcAccount(ident, ""), plain, 201)


async def change_account(call: BmcRequest) -> Response:
    """PATCH an account: one's own password, or anything with the privilege ConfigureUsers."""
    account = call.view.logins.accounts.get(call.ids[0])
    if account is None:
        raise not_found(call.request.url.path)
    plain = await call.read_parameters(WRITABLE | {"Id", "Name", "Links"})
    if set(plain) - {"Password"} or call.account is not account:
        require_privilege(call, "ConfigureUsers")
    for name in plain:
        if name not in WRITABLE:
            raise not_writable(name)
    return await _store(call, account, plain, 200)


async def delete_account(call: BmcRequest) -> Response:
    """DELETE an account. The first one cannot be deleted, so that somebody can always log in."""
    if call.ids[0] not in call.view.logins.accounts:
        raise not_found(call.request.url.path)
    if call.ids[0] == "1":
        raise state_conflict("The first account cannot be deleted")

    def without(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        accounts = {ident: account for ident, account in state["accounts"].items() if ident != call.ids[0]}
        return {**state, "accounts": accounts}

    await call.bmc.change(without)
    await call.bmc.view()
    return no_content_answer()


async def _store(call: BmcRequest, account: BmcAccount, plain: dict[str, Any], status: int) -> Response:
    """Store an account with its changes, and answer with it."""
    if plain.get("Locked", False) is not False:
        raise not_in_list(plain["Locked"], "Locked")
    role = plain.get("RoleId", account.role)
    if role not in ROLES:
        raise not_in_list(role, "RoleId")
    changed = {name: require_string(plain, name) for name in ("UserName", "Password") if name in plain}
    entry = {
        "user": changed.get("UserName", account.user),
        "digest": _digest(account.id, changed["Password"]) if "Password" in changed else account.digest,
        "role": role,
        "enabled": plain.get("Enabled", account.enabled) is True,
        "locked": plain.get("Locked", account.locked),
        "must_change": account.must_change and "Password" not in changed,
    }
    await call.bmc.change(lambda state, _: {**state, "accounts": {**state["accounts"], account.id: entry}})
    path = f"{REDFISH_ROOT}{ACCOUNTS}/{account.id}"
    location = {"Location": path} if status == 201 else {}
    return resource_answer(RESOURCE_TREE.read(await call.bmc.view(), path), status, **location)


def _digest(ident: str, password: str) -> str:
    if len(password) < MIN_PASSWORD_CHARS:
        text = f"The password is too short; it needs {MIN_PASSWORD_CHARS} characters"
        raise RedfishErrorResponse(400, "PropertyValueFormatError", text, "", "Password")
    return digest_password(ident, password)


async def subscribe(call: BmcRequest) -> Response:
    """POST to Subscriptions. The lab only keeps them: it sends no events and no syslog."""
    names = {"Destination", "Context", "Protocol", "SubscriptionType", "EventFormatType", "EventTypes"}
    plain = await call.read_parameters(names, ("Destination", "Protocol"))
    lacks_syslog = "Syslog" in call.view.state["box"]["lacks"]
    is_syslog = plain["Protocol"] in SYSLOG_PROTOCOLS and not lacks_syslog
    kind, protocol = ("Syslog", plain["Protocol"]) if is_syslog else ("RedfishEvent", "Redfish")
    for name, allowed in (("Protocol", protocol), ("SubscriptionType", kind), ("EventFormatType", "Event")):
        if plain.get(name, allowed) != allowed:
            raise not_in_list(plain[name], name)
    destination = require_string(plain, "Destination")
    if urlsplit(destination).scheme not in ({"syslog"} if is_syslog else {"http", "https"}):
        raise not_in_list(destination, "Destination")
    ident = secrets.token_hex(4)
    entry = {"destination": destination, "context": str(plain.get("Context", "")), "protocol": protocol}
    await call.bmc.change(lambda state, _: {**state, "subscriptions": {**state.get("subscriptions", {}), ident: entry}})
    path = f"{REDFISH_ROOT}{SUBSCRIPTIONS}/{ident}"
    return resource_answer(RESOURCE_TREE.read(await call.bmc.view(), path), 201, Location=path)


async def unsubscribe(call: BmcRequest) -> Response:
    """DELETE a subscription."""
    if call.ids[0] not in call.view.state.get("subscriptions", {}):
        raise not_found(call.request.url.path)

    def without(state: dict[str, Any], _: object) -> dict[str, Any]:
        left = {name: entry for name, entry in state.get("subscriptions", {}).items() if name != call.ids[0]}
        return {**state, "subscriptions": left}

    await call.bmc.change(without)
    return no_content_answer()
