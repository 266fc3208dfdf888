"""The lab's scheduler over loopback HTTP: timed jobs, cordons with reasons, requeue, and commands on idle nodes.

```
GET  /jobs?node=N               {"jobs": [{"id","name","owner","node","since","ends_at","state"}…]}, running on N
GET  /jobs                      all jobs of all time, with their state (running, ended, requeued)
POST /jobs                      {"name","owner","node","seconds"} → the job; 409 if N is cordoned
GET  /nodes/N                   {"cordon": reason or "", "since": when it was set}
PUT  /nodes/N/cordon            {"reason"}; 409 if N has another cordon
DELETE /nodes/N/cordon
PUT  /cordons                   {node: reason}; existing cordons stay
GET  /standings                 {"jobs": [running jobs], "cordons": {node: reason}}
POST /nodes/N/requeue           {"jobs": [ids]} ends these jobs of the node, all without it; each stays listed
POST /nodes/N/spare             {"command","given","deadline_s"}, bytes in base64
                                → {"code","output","errors","yielded","gone_ms"}
```

Its adapter is `lab`: the inventory variable `workloads: lab` selects it; `lab_scheduler` is the server's URL.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request as Call
from urllib.request import urlopen

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.adapters.scheduler import VERIFY_UNDRAIN, CustomerJob, SchedulerNodeStatus, SpareRunResult
from assay.lab.world import LabWorld
from assay.model.cordon_ownership import is_our_reason, prefix_reason
from assay.model.errors import AssayError
from assay.model.specs.node_settings import NodeSettings

ANSWER_WITHIN_S = 5.0


class LabJobQueue:
    """Jobs and cordons, in memory. `now` is the lab's clock; a job becomes `ended` when its time is over."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.cordons: dict[str, str] = {}
        self.closed_at: dict[str, str] = {}
        self._now = now
        self._jobs: list[dict[str, Any]] = []
        self._numbers = count(1)

    def jobs(self, node: str | None = None) -> list[dict[str, Any]]:
        """Return the jobs running on `node`, or, without a node, all jobs of all time."""
        now = self._now()
        for job in self._jobs:
            if job["state"] == "running" and datetime.fromisoformat(job["ends_at"]) <= now:
                job["state"] = "ended"
        return [job for job in self._jobs if node is None or (job["node"] == node and job["state"] == "running")]

    def cordon(self, node: str, reason: str) -> str:
        """Cordon a node, unless it is cordoned already; return the reason of its cordon."""
        if node not in self.cordons:
            self.cordons[node] = reason
            self.closed_at[node] = self._now().isoformat()
        return self.cordons[node]

    def uncordon(self, node: str) -> None:
        """Remove a node's cordon."""
        self.cordons.pop(node, None)
        self.closed_at.pop(node, None)

    def place(self, name: str, owner: str, node: str, seconds: float) -> dict[str, Any] | None:
        """Start a job of `seconds` and return it, None if the node is cordoned."""
        if node in self.cordons:
            return None
        now = self._now()
        job = {
            "id": str(next(self._numbers)),
            "name": name,
            "owner": owner,
            "node": node,
            "since": now.isoformat(),
            "ends_at": (now + timedelta(seconds=seconds)).isoformat(),
            "state": "running",
        }
        self._jobs.append(job)
        return job

    def requeue(self, node: str, only: Collection[str] | None = None) -> list[dict[str, Any]]:
        """End the node's running jobs, mark them as requeued, and return them. `only`: those with these ids."""
        ended = [job for job in self.jobs(node) if only is None or job["id"] in only]
        for job in ended:
            job.update(state="requeued", ends_at=self._now().isoformat())
        return ended


class SpareCommandRunner:
    """Runs commands on idle nodes, one a node at a time. A customer's job ends the command at once."""

    def __init__(self, world: LabWorld, queue: LabJobQueue) -> None:
        self._world = world
        self._queue = queue
        self._running: dict[str, Process] = {}
        self._preempted: dict[str, float] = {}

    async def run_command(self, node: str, command: Sequence[str], given: str, deadline_s: float) -> dict[str, Any]:
        """Run a command on a node; return the answer of POST /nodes/N/spare."""
        if node in self._running:
            return _result_as_json(None, err=b"another command runs on this idle node")
        if self._customers(node) or node in self._queue.cordons:
            return _result_as_json(None, yielded=self._customers(node))
        remote = [sys.executable, "-m", "assay.lab.node.shell", str(self._world.home), node, *command]
        process = await asyncio.create_subprocess_exec(*remote, stdin=PIPE, stdout=PIPE, stderr=PIPE, process_group=0)
        self._running[node] = process
        try:
            return await self._wait_for_result(node, process, b64decode(given), deadline_s)
        finally:
            del self._running[node]
            self._preempted.pop(node, None)

    def end_for_customer(self, node: str) -> None:
        """Kill the command on a node, because a customer's job starts there."""
        if process := self._running.get(node):
            self._preempted[node] = time.monotonic()
            _kill_process(process)

    async def _wait_for_result(self, node: str, process: Process, given: bytes, deadline_s: float) -> dict[str, Any]:
        try:
            out, err = await asyncio.wait_for(process.communicate(given), deadline_s)
        except TimeoutError:
            _kill_process(process)
            await process.wait()
            return _result_as_json(None)
        if node in self._preempted:
            gone_ms = math.ceil(1000 * (time.monotonic() - self._preempted[node]))
            return _result_as_json(None, out, err, self._customers(node) or "a job that is over already", gone_ms)
        code = process.returncode
        return _result_as_json(None if code is None or code < 0 else code, out, err)

    def _customers(self, node: str) -> str:
        jobs = self._queue.jobs(node)
        return ", ".join(f"job {job['id']} ({job['name']}, {job['owner']})" for job in jobs)


def _result_as_json(
    code: int | None, out: bytes = b"", err: bytes = b"", yielded: str = "", gone_ms: int | None = None
) -> dict[str, Any]:
    output = b64encode(out).decode()
    errors = err.decode(errors="replace")
    return {"code": code, "output": output, "errors": errors, "yielded": yielded, "gone_ms": gone_ms}


def _kill_process(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def scheduler_app(world: LabWorld) -> Starlette:
    """Return the scheduler as an ASGI app. Jobs end by the lab's clock."""
    handlers = _SchedulerRoutes(world)
    return Starlette(
        routes=[
            Route("/standings", handlers.standings),
            Route("/jobs", handlers.jobs),
            Route("/jobs", handlers.place, methods=["POST"]),
            Route("/cordons", handlers.cordon_many, methods=["PUT"]),
            Route("/nodes/{node}", handlers.node),
            Route("/nodes/{node}/cordon", handlers.cordon, methods=["PUT"]),
            Route("/nodes/{node}/cordon", handlers.uncordon, methods=["DELETE"]),
            Route("/nodes/{node}/requeue", handlers.requeue, methods=["POST"]),
            Route("/nodes/{node}/spare", handlers.spare, methods=["POST"]),
        ]
    )


class _SchedulerRoutes:
    """The handlers, one a route."""

    def __init__(self, world: LabWorld) -> None:
        self._world = world
        self._queue = LabJobQueue(lambda: world.clock().now())
        self._spare = SpareCommandRunner(world, self._queue)

    async def jobs(self, request: Request) -> Response:
        return JSONResponse({"jobs": self._queue.jobs(request.query_params.get("node"))})

    async def standings(self, _: Request) -> Response:
        running = [job for job in self._queue.jobs(None) if job["state"] == "running"]
        return JSONResponse({"jobs": running, "cordons": self._queue.cordons})

    async def place(self, request: Request) -> Response:
        order = await request.json()
        job = self._queue.place(order["name"], order["owner"], order["node"], float(order["seconds"]))
        if job is None:
            return JSONResponse({"error": f"{order['node']} is cordoned"}, status_code=409)
        self._spare.end_for_customer(order["node"])
        return JSONResponse(job, status_code=201)

    async def node(self, request: Request) -> Response:
        name = request.path_params["node"]
        since = self._queue.closed_at.get(name, "")
        return JSONResponse({"cordon": self._queue.cordons.get(name, ""), "since": since})

    async def cordon(self, request: Request) -> Response:
        reason = (await request.json())["reason"]
        standing = self._queue.cordon(request.path_params["node"], reason)
        return JSONResponse({"cordon": standing}, status_code=200 if standing == reason else 409)

    async def cordon_many(self, request: Request) -> Response:
        reasons = await request.json()
        return JSONResponse({name: self._queue.cordon(name, reason) for name, reason in reasons.items()})

    async def uncordon(self, request: Request) -> Response:
        self._queue.uncordon(request.path_params["node"])
        return JSONResponse({"cordon": ""})

    async def requeue(self, request: Request) -> Response:
        node, order = request.path_params["node"], await request.body()
        ended = self._queue.requeue(node, json.loads(order)["jobs"] if order else None)
        numbers = {job["id"] for job in ended}
        with self._world.change(node) as state:  # the processes of a job end with it
            for gpu in state["gpus"]:
                gone = {pid for pid, job in gpu.get("pid_jobs", {}).items() if str(job) in numbers}
                gpu["pids"] = [pid for pid in gpu["pids"] if str(pid) not in gone]
                gpu["pid_jobs"] = {pid: job for pid, job in gpu.get("pid_jobs", {}).items() if pid not in gone}
        return JSONResponse({"jobs": ended})

    async def spare(self, request: Request) -> Response:
        return JSONResponse(await self._spare.run_command(request.path_params["node"], **await request.json()))


class LabScheduler:
    """The adapter `lab`, built from a node's settings. Raises AssayError without `lab_scheduler`."""

    places_jobs = True

    def __init__(self, settings: NodeSettings) -> None:
        self.address = str(settings.other_variables.get("lab_scheduler", ""))
        if not self.address:
            raise AssayError(
                "workloads is `lab`, but the inventory variable `lab_scheduler` is not set",
                fix="start the lab: `assay lab up` adds its addresses to the inventory",
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabScheduler) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the jobs running on the node."""
        jobs = self._request("GET", f"/jobs?node={quote(node)}")["jobs"]
        return tuple(CustomerJob(job["id"], job["name"], job["owner"], job["since"]) for job in jobs)

    def read_cordon_reason(self, node: str) -> str:
        """Return the reason of the node's cordon, "" if it has none."""
        return str(self._request("GET", f"/nodes/{quote(node)}")["cordon"])

    def cordon(self, node: str, reason: str) -> None:
        """Cordon the node, so that no new job starts; an existing cordon stays as it is."""
        if not self.read_cordon_reason(node):
            self._request("PUT", f"/nodes/{quote(node)}/cordon", {"reason": prefix_reason(reason)})

    def uncordon(self, node: str) -> None:
        """Remove the cordon if it is ours."""
        if is_our_reason(self.read_cordon_reason(node)):
            self._request("DELETE", f"/nodes/{quote(node)}/cordon")

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node; with `now`, also end and requeue its jobs."""
        self.cordon(node, reason)
        if now:
            self._request("POST", f"/nodes/{quote(node)}/requeue")

    def end_jobs(self, node: str, jobs: Collection[str]) -> None:
        """End and requeue these jobs of the node."""
        self._request("POST", f"/nodes/{quote(node)}/requeue", {"jobs": sorted(jobs)})

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return the status of each node, with one request."""
        jobs: dict[str, list[CustomerJob]] = defaultdict(list)
        answer = self._request("GET", "/standings")
        for job in answer["jobs"]:
            jobs[job["node"]].append(CustomerJob(job["id"], job["name"], job["owner"], job["since"]))
        return {node: SchedulerNodeStatus(tuple(jobs[node]), answer["cordons"].get(node, "")) for node in nodes}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon several nodes with one request. `reasons` maps a node to its reason."""
        self._request("PUT", "/cordons", {node: prefix_reason(reason) for node, reason in reasons.items()})

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command on the node until a customer's job is placed there."""
        order = {"command": list(command), "given": b64encode(given).decode(), "deadline_s": deadline_s}
        answer = self._request("POST", f"/nodes/{quote(node)}/spare", order, deadline_s + ANSWER_WITHIN_S)
        output = b64decode(answer["output"])
        return SpareRunResult(answer["code"], output, answer["errors"], answer["yielded"], answer["gone_ms"])

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Remove a cordon that asks for verification and is older than `began`; return its reason, else ""."""
        answer = self._request("GET", f"/nodes/{quote(node)}")
        if VERIFY_UNDRAIN not in answer["cordon"] or datetime.fromisoformat(answer["since"]) > began:
            return ""
        self._request("DELETE", f"/nodes/{quote(node)}/cordon")
        return str(answer["cordon"])

    def place(self, name: str, owner: str, node: str, seconds: float) -> CustomerJob:
        """Start a customer's job of `seconds` lab seconds on a node. Raises AssayError if it is cordoned."""
        job = self._request("POST", "/jobs", {"name": name, "owner": owner, "node": node, "seconds": seconds})
        return CustomerJob(job["id"], job["name"], job["owner"], job["since"])

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, within_s: float = ANSWER_WITHIN_S
    ) -> Any:
        content = json.dumps(body).encode() if body is not None else None
        call = Call(self.address + path, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urlopen(call, timeout=within_s) as answer:  # noqa: S310 — loopback, from the lab's own overlay
                return json.load(answer)
        except HTTPError as refusal:
            raise AssayError(f"the scheduler refused: {refusal.read().decode()}", where=self.address) from None
        except (URLError, OSError) as lost:
            raise AssayError(
                f"the scheduler does not answer: {lost}", where=self.address, fix="is the lab up? `assay lab status`"
            ) from None
