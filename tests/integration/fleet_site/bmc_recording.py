"""What a BMC of the site answers: every resource of one, recorded once, with places for what each machine has its own.

`python -m tests.integration.fleet_site.bmc_recording` records anew, from the virtual BMC of an example node, made to
look like a BMC in a rack: no name in it says that it was virtual. It needs `src` on PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import requests

from assay.declare.loader import load_fleet
from assay.declare.starter.new_repository import create_repository
from assay.lab.bmc.server import VirtualBmcs
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld

FILE = Path(__file__).parent / "recordings" / "bmc.json"
NODE, CREDENTIALS = "n0001", "assay:once"
RECORDED_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
STANDING = 1e-9
"""The rate of a clock that shows one moment as long as the BMC is read."""
LINKS = ("@odata.id", "MembersUri")
DOMAIN = "oslo.internal"
LOOKS_REAL = {" (virtual)": "", '"Assay.1.0.': '"OpenBMC.0.6.', "lab1.example": DOMAIN}
LEFT_OUT = re.compile(r"/redfish/v1/(AccountService/Roles|SessionService/Sessions)/")


def read_recording(places: Mapping[str, str]) -> dict[str, Any]:
    """Return path → resource of a machine whose own texts, such as `serial` or `gpu0`, are `places`."""
    text = FILE.read_text().replace('"<u>"', places["u"])  # a number
    for name, own in places.items():
        text = text.replace(f"<{name}>", own)
    missing = set(re.findall(r"<(\w+)>", text)) - {"now", "user"}
    assert not missing, f"the recording has places that nothing fills: {missing}"
    return json.loads(text)  # type: ignore[no-any-return]


def find_places(state: Mapping[str, Any]) -> dict[str, str]:
    """Return place → text of a machine with this state: what of it stands in its BMC's answers."""
    parts = {f"gpu{index}": part["serial"] for index, part in enumerate(state["gpus"])}
    uuid = str(uuid5(NAMESPACE_DNS, state["serial"]))
    place = {"rack": state["rack"], "u": str(state["u"])}
    return {"node": state["name"], "serial": state["serial"], "uuid": uuid, **place, **parts}


def record() -> None:
    """Write the recording."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "fleet"
        create_repository(root)
        world = LabWorld(Path(folder) / "world")
        build_world(load_fleet(root), world, RECORDED_AT, STANDING)
        tree = asyncio.run(_read_bmc(world))
        places = {**find_places(world.load(NODE)), "uuid": tree["/redfish/v1"]["UUID"]}
    text = json.dumps({path: _without_tags(tree[path]) for path in sorted(tree)})
    text = text.replace('"/redfish/v1', '\n"/redfish/v1').replace('": \n"', '": "')
    for virtual, real in LOOKS_REAL.items():
        text = text.replace(virtual, real)
    text = text.replace(f'"RackOffset": {places.pop("u")}', '"RackOffset": "<u>"')
    for name, own in sorted(places.items(), key=lambda place: -len(place[1])):
        text = text.replace(own, f"<{name}>")
    text = text.replace('"UserName": "assay"', '"UserName": "<user>"')
    FILE.write_text(text.replace(RECORDED_AT.isoformat(), "<now>") + "\n")


async def _read_bmc(world: LabWorld) -> dict[str, Any]:
    bmcs = VirtualBmcs(world, credentials=CREDENTIALS)
    port = (await bmcs.start())[NODE]
    try:
        return await asyncio.to_thread(_crawl, f"https://127.0.0.1:{port}", world.home / "ca.pem")
    finally:
        await bmcs.stop()


def _crawl(address: str, authority: Path) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    with requests.Session() as session:
        session.verify, session.trust_env = str(authority), False
        user, _, password = CREDENTIALS.partition(":")
        session.auth = (user, password)
        coming = ["/redfish/v1"]
        while coming:
            path = coming.pop()
            if path not in tree and not LEFT_OUT.match(path):
                answer = session.get(address + path, timeout=60)
                tree[path] = answer.json() if answer.ok else None
                coming += _find_links(tree[path])
    return {path: resource for path, resource in tree.items() if resource is not None}


def _find_links(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name, content in part.items():
            if name in LINKS and isinstance(content, str):
                yield content.partition("#")[0].rstrip("/")
            else:
                yield from _find_links(content)
    elif isinstance(part, list):
        for member in part:
            yield from _find_links(member)


def _without_tags(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_tags(content) for name, content in part.items() if name != "@odata.etag"}
    return [_without_tags(member) for member in part] if isinstance(part, list) else part


if __name__ == "__main__":
    record()
