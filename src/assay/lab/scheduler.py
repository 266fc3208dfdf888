"""The lab's scheduler: jobs that end when their time is over, cordons with reasons, and a requeue.

`scheduler_app` is the far end, served over loopback HTTP by the lab's daemon; `LabWorkloads` is the adapter that
the inventory variable `workloads: lab` names, with the far end's address in `lab_scheduler`.

```
GET  /jobs?node=N               {"jobs": [{"id","name","owner","node","since","ends_at","state"}…]}  running on N
GET  /jobs                      every job that ever was, with its state (running, ended, requeued)
POST /jobs                      {"name","owner","node","seconds"} → the job, or 409 where N is cordoned
GET  /nodes/N                   {"cordon": reason or ""}
PUT  /nodes/N/cordon            {"reason"}; 409 where somebody else's cordon stands
DELETE /nodes/N/cordon
GET  /standings                 {"jobs": [those that run], "cordons": {node: reason}}
POST /nodes/N/requeue           ends the node's jobs; each stays in the record as requeued
```
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request as Call
from urllib.request import urlopen

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.actions.workloads import Job, Spare, Standing, named, our_reason, ours
from assay.lab.queue import Queue
from assay.lab.world import World
from assay.model.errors import Trouble

ANSWER_WITHIN_S = 5.0
LOOK_S = 0.05


def scheduler_app(world: World) -> Starlette:
    """Return the scheduler as an ASGI app; its jobs end by the lab's clock."""
    queue = Queue(lambda: world.clock().now())

    async def jobs(request: Request) -> Response:
        return JSONResponse({"jobs": queue.jobs(request.query_params.get("node"))})

    async def standings(_: Request) -> Response:
        running = [job for job in queue.jobs(None) if job["state"] == "running"]
        return JSONResponse({"jobs": running, "cordons": queue.cordons})

    async def place(request: Request) -> Response:
        wish = await request.json()
        job = queue.place(wish["name"], wish["owner"], wish["node"], float(wish["seconds"]))
        if job is None:
            return JSONResponse({"error": f"{wish['node']} is cordoned"}, status_code=409)
        return JSONResponse(job, status_code=201)

    async def node(request: Request) -> Response:
        return JSONResponse({"cordon": queue.cordons.get(request.path_params["node"], "")})

    async def cordon(request: Request) -> Response:
        reason = (await request.json())["reason"]
        standing = queue.cordons.setdefault(request.path_params["node"], reason)
        return JSONResponse({"cordon": standing}, status_code=200 if standing == reason else 409)

    async def uncordon(request: Request) -> Response:
        queue.cordons.pop(request.path_params["node"], None)
        return JSONResponse({"cordon": ""})

    async def requeue(request: Request) -> Response:
        return JSONResponse({"jobs": queue.requeue(request.path_params["node"])})

    return Starlette(
        routes=[
            Route("/standings", standings),
            Route("/jobs", jobs),
            Route("/jobs", place, methods=["POST"]),
            Route("/nodes/{node}", node),
            Route("/nodes/{node}/cordon", cordon, methods=["PUT"]),
            Route("/nodes/{node}/cordon", uncordon, methods=["DELETE"]),
            Route("/nodes/{node}/requeue", requeue, methods=["POST"]),
        ]
    )


class LabWorkloads:
    """The adapter `lab`. Built from a node's inventory variables."""

    places = True

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self.address = str(variables.get("lab_scheduler", ""))
        if not self.address:
            raise Trouble(
                "workloads is `lab`, but the inventory variable `lab_scheduler` is not set",
                fix="start the lab (`assay lab up`), which lays its addresses over the inventory",
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabWorkloads) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Return the jobs that run on the node now."""
        found = self._ask("GET", f"/jobs?node={quote(node)}")["jobs"]
        return tuple(Job(job["id"], job["name"], job["owner"], job["since"]) for job in found)

    def cordoned(self, node: str) -> str:
        """Return the reason of the cordon that stands, or ""."""
        return str(self._ask("GET", f"/nodes/{quote(node)}")["cordon"])

    def cordon(self, node: str, reason: str) -> None:
        """Let no new job start, unless somebody has said so before."""
        if not self.cordoned(node):
            self._ask("PUT", f"/nodes/{quote(node)}/cordon", {"reason": our_reason(reason)})

    def uncordon(self, node: str) -> None:
        """Undo our own cordon."""
        if ours(self.cordoned(node)):
            self._ask("DELETE", f"/nodes/{quote(node)}/cordon")

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon; with `now` end and requeue the jobs."""
        self.cordon(node, reason)
        if now:
            self._ask("POST", f"/nodes/{quote(node)}/requeue")

    def standings(self, nodes: Collection[str]) -> dict[str, Standing]:
        """Return how each node stands, by one question."""
        jobs: dict[str, list[Job]] = defaultdict(list)
        told = self._ask("GET", "/standings")
        for job in told["jobs"]:
            jobs[job["node"]].append(Job(job["id"], job["name"], job["owner"], job["since"]))
        return {node: Standing(tuple(jobs[node]), told["cordons"].get(node, "")) for node in nodes}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon one after the other: the far end is on this machine."""
        for node, reason in reasons.items():
            self.cordon(node, reason)

    def spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> Spare:
        """Run the command here, as a lab node's shell does, and end it as soon as a customer's job is on the node."""
        if self.jobs(node):
            return Spare(None, yielded=named(self.jobs(node)))
        with tempfile.TemporaryFile() as given_file, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given_file.write(given)
            given_file.seek(0)
            process = subprocess.Popen(command, stdin=given_file, stdout=out, stderr=err, process_group=0)
            yielded = self._watched(process, node, deadline_s)
            out.seek(0)
            err.seek(0)
            code = None if yielded or process.returncode < 0 else process.returncode
            return Spare(code, out.read(), err.read().decode(errors="replace"), yielded)

    def _watched(self, process: subprocess.Popen[bytes], node: str, deadline_s: float) -> str:
        """Wait for a process; end it for a customer, whom this returns, or at its deadline."""
        ends_at = time.monotonic() + deadline_s
        while process.poll() is None:
            jobs = self.jobs(node)
            if jobs or time.monotonic() > ends_at:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return named(jobs)
            time.sleep(LOOK_S)
        return ""

    def place(self, name: str, owner: str, node: str, seconds: float) -> Job:
        """Start a job of `seconds` lab seconds on a node, as a customer would. Trouble where it is cordoned."""
        wish = {"name": name, "owner": owner, "node": node, "seconds": seconds}
        job = self._ask("POST", "/jobs", wish)
        return Job(job["id"], job["name"], job["owner"], job["since"])

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = json.dumps(body).encode() if body is not None else None
        call = Call(self.address + path, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urlopen(call, timeout=ANSWER_WITHIN_S) as answer:  # noqa: S310 — loopback, from the lab's own overlay
                return json.load(answer)
        except HTTPError as refusal:
            raise Trouble(f"the scheduler refused: {refusal.read().decode()}", where=self.address) from None
        except (URLError, OSError) as lost:
            raise Trouble(
                f"the scheduler does not answer: {lost}", where=self.address, fix="is the lab up? `assay lab status`"
            ) from None
