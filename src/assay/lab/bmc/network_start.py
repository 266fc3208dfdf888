"""A virtual machine that starts from the network: it asks its boot server over real HTTP, as iPXE and cloud-init do.

A start lives in memory: one that is under way when the lab's process ends does not go on.
"""

from __future__ import annotations

import asyncio
import shlex
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http.client import HTTPException

from assay.act.boot.script import BOOT_PATH
from assay.lab.bmc.virtual_bmc import VirtualBmc
from assay.lab.virtual_node_state import VirtualNodeState

PAUSE_S = 30.0
"""How long a machine waits before it asks again, in lab seconds, where the script names no time."""
DEADLINE_S = 20.0
CONSOLE_LINES = 100
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(slots=True)
class StartScript:
    """What an iPXE script says: the files to fetch, the kernel's command line, and how long to wait otherwise."""

    files: list[str] = field(default_factory=list)
    command_line: str = ""
    pause_s: float = PAUSE_S


def read_script(text: str) -> StartScript:
    """Return what a script says. Unknown commands are passed over, as a machine shows them to nobody."""
    script = StartScript()
    for line in text.splitlines():
        words = shlex.split(line.partition("||")[0], comments=True)
        if words[:1] in (["kernel"], ["initrd"]):
            url = next(place for place, word in enumerate(words) if "://" in word)
            script.files.append(words[url])
            if words[0] == "kernel":
                script.command_line = " ".join(words[url + 1 :])
        elif words[:1] == ["sleep"]:
            script.pause_s = float(words[1])
    return script


async def start_from_network(bmc: VirtualBmc, boot_id: str) -> None:
    """Ask until a start succeeds, or until the machine is switched off or reset, which ends this boot."""
    while _is_starting(state := bmc.stored_state(), boot_id):
        clock = bmc.world.clock()
        on_at = datetime.fromisoformat(state["power"]["on_at"] or state["boot"]["reset_at"])
        await asyncio.sleep(max(0.0, (on_at - clock.now()).total_seconds() / clock.rate))
        if not _is_starting(bmc.stored_state(), boot_id):
            return
        pause_s = PAUSE_S
        command_line = ""
        shown: list[str] = []
        try:
            script = await asyncio.to_thread(_load, state, shown)
            pause_s = script.pause_s
            command_line = script.command_line
            if command_line:
                await asyncio.to_thread(_set_up, state, command_line, shown)
                await asyncio.sleep(state["timing"]["boot_s"] / clock.rate)
        except (OSError, HTTPException, ValueError, StopIteration) as error:
            shown.append(f"{error}")
            command_line = ""
        await bmc.change(partial(_show_on_console, boot_id, shown))
        if command_line:
            await bmc.change(partial(_complete, boot_id, command_line))
            return
        await asyncio.sleep(pause_s / clock.rate)


def _is_starting(state: VirtualNodeState, boot_id: str) -> bool:
    return bool(state.get("network_start")) and state["boot"]["id"] == boot_id and state["power"]["state"] == "On"


def _complete(boot_id: str, command_line: str, state: VirtualNodeState, now: datetime) -> VirtualNodeState:
    if not _is_starting(state, boot_id) or state["fails"].get("start_hangs"):
        return state
    boot = {**state["boot"], "ready_at": now.isoformat()}
    return {**state, "network_start": False, "cmdline": command_line, "boot": boot}


def _show_on_console(boot_id: str, lines: list[str], state: VirtualNodeState, _: datetime) -> VirtualNodeState:
    """Add lines to the machine's serial console, unless another boot has begun."""
    if state["boot"]["id"] != boot_id:
        return state
    return {**state, "console": [*state.get("console", []), *lines][-CONSOLE_LINES:]}


def _load(state: VirtualNodeState, shown: list[str]) -> StartScript:
    """Fetch the script and the files that it names, as iPXE does. Raises OSError where one is refused."""
    identity = {"mac": state["nics"][0]["mac"], "serial": state["serial"], "uuid": state["boot"]["id"]}
    query = urllib.parse.urlencode(identity)
    shown.append(f"iPXE asks {state['boot_server']}")
    script = read_script(_fetch(f"{state['boot_server']}{BOOT_PATH}/script?{query}").decode())
    for url in script.files:
        _fetch(url)
        shown.append(f"\x1b[1m{url}... ok\x1b[0m")
    return script


def _set_up(state: VirtualNodeState, command_line: str, shown: list[str]) -> None:
    """Fetch the data of the start, as cloud-init does, and report how far it came."""
    shown.append(f"Command line: {command_line}")
    if state["fails"].get("start_hangs"):
        shown.append("Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)")
        return
    source = next(word for word in command_line.split() if word.startswith("ds=nocloud"))
    data = source.partition(";s=")[2]
    for name in ("meta-data", "user-data", "vendor-data"):
        _fetch(f"{data}{name}")
    attempt = data.rstrip("/").rpartition("/")[2]
    _fetch(f"{data.partition(BOOT_PATH)[0]}{BOOT_PATH}/attempts/{attempt}/stages/cloud-init", b"{}")


def _fetch(url: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"} if body else {})  # noqa: S310 — a script of the lab's own server
    with _DIRECT.open(request, timeout=DEADLINE_S) as answer:
        content: bytes = answer.read()
    return content
