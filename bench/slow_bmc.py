"""`python -m bench.slow_bmc FOLDER SIZE ANSWER_S` serves one BMC of about SIZE resources that takes ANSWER_S an answer.

It offers no `$expand`, so each resource is a request. FOLDER/port holds its port, FOLDER/ca.pem the CA certificate.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path
from typing import Any

import uvicorn

from assay.lab.bmc.certificates import make_authority

ROOT = "/redfish/v1"
SHARES = {"Sensors": 0.45, "FirmwareInventory": 0.25, "Memory": 0.2, "Fans": 0.1}
"""How the resources of a large machine are spread, roughly as in recorded trees."""
FRAME = 18
"""The resources that every size has: root, systems, manager, chassis, logs and collections."""


def make_tree(size: int) -> dict[str, Any]:
    """Return path → resource of a BMC with `size` resources."""
    tree: dict[str, Any] = {}

    def put(path: str, **properties: Any) -> dict[str, str]:
        tree[ROOT + path] = {"@odata.id": ROOT + path, "Id": path.rpartition("/")[2], **properties}
        return {"@odata.id": ROOT + path}

    def collect(path: str, **properties: Any) -> dict[str, str]:
        count = round((size - FRAME) * SHARES[path.rpartition("/")[2]])
        return put(path, Members=[put(f"{path}/{number}", **properties) for number in range(count)])

    box, system, entry = "/Chassis/Box", "/Systems/Host", {"Id": "1", "Created": "2026-11-20T08:00:00Z"}
    fans = put(f"{box}/ThermalSubsystem", Fans=collect(f"{box}/ThermalSubsystem/Fans", SpeedPercent={"SpeedRPM": 8000}))
    sensors = collect(f"{box}/Sensors", ReadingType="Temperature", Reading=40.0)
    chassis = put(box, Sensors=sensors, ThermalSubsystem=fans)
    entries = put(f"{system}/LogServices/SEL/Entries", Members=[{**entry, "Severity": "OK", "Message": "on"}])
    log = put(f"{system}/LogServices/SEL", Entries=entries)
    logs = put(f"{system}/LogServices", Members=[log])
    memory = collect(f"{system}/Memory", CapacityMiB=65536)
    links = {"Chassis": [chassis], "ManagedBy": [put("/Managers/BMC", FirmwareVersion="1.0")]}
    host = put(system, BiosVersion="1", PowerState="On", LogServices=logs, Memory=memory, Links=links)
    firmware = put("/UpdateService", FirmwareInventory=collect("/UpdateService/FirmwareInventory", Version="1.0"))
    put("", Systems=put("/Systems", Members=[host]), UpdateService=firmware)
    return tree


async def serve(folder: Path, size: int, answer_s: float) -> None:
    """Serve the BMC until the process is killed."""
    tree = {path: json.dumps(resource).encode() for path, resource in make_tree(size).items()}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    make_authority(folder / "ca.pem").configure_cert(context)

    async def answer(scope: Any, _: Any, send: Any) -> None:
        await asyncio.sleep(answer_s)
        login = scope["method"] == "POST"
        body = b"{}" if login or scope["method"] == "DELETE" else tree.get(scope["path"].rstrip("/"), b"")
        session = [(b"x-auth-token", b"t"), (b"location", f"{ROOT}/SessionService/Sessions/1".encode())]
        headers = [(b"content-length", str(len(body)).encode()), *(session if login else [])]
        await send(
            {"type": "http.response.start", "status": 201 if login else 200 if body else 404, "headers": headers}
        )
        await send({"type": "http.response.body", "body": body})

    config = uvicorn.Config(answer, port=0, ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    config.ssl = context
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    (folder / "port.new").write_text(str(server.servers[0].sockets[0].getsockname()[1]))
    (folder / "port.new").rename(folder / "port")
    await running


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
