"""The lab's scheduler: jobs that end when their time is over, cordons with reasons, and a requeue.

It is the far end, served over loopback HTTP by the lab's daemon; `assay.lab.scheduler` is the adapter.

```
GET  /jobs?node=N               {"jobs": [{"id","name","owner","node","since","ends_at","state"}…]}  running on N
GET  /jobs                      every job that ever was, with its state (running, ended, requeued)
POST /jobs                      {"name","owner","node","seconds"} → the job, or 409 where N is cordoned
GET  /nodes/N                   {"cordon": reason or "", "since": when it was set}
PUT  /nodes/N/cordon            {"reason"}; 409 where somebody else's cordon stands
DELETE /nodes/N/cordon
PUT  /cordons                   {node: reason}; those that stand stay
GET  /standings                 {"jobs": [those that run], "cordons": {node: reason}}
POST /nodes/N/requeue           ends the node's jobs; each stays in the record as requeued
POST /nodes/N/spare             {"command","given","deadline_s"} → {"code","output","errors","yielded"}; base64 bytes
```
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.lab.queue import Queue
from assay.lab.spare_time import SpareTime
from assay.lab.world import World


def scheduler_app(world: World) -> Starlette:
    """Return the scheduler as an ASGI app; its jobs end by the lab's clock."""
    far = _FarEnd(world)
    return Starlette(
        routes=[
            Route("/standings", far.standings),
            Route("/jobs", far.jobs),
            Route("/jobs", far.place, methods=["POST"]),
            Route("/cordons", far.cordon_many, methods=["PUT"]),
            Route("/nodes/{node}", far.node),
            Route("/nodes/{node}/cordon", far.cordon, methods=["PUT"]),
            Route("/nodes/{node}/cordon", far.uncordon, methods=["DELETE"]),
            Route("/nodes/{node}/requeue", far.requeue, methods=["POST"]),
            Route("/nodes/{node}/spare", far.spare, methods=["POST"]),
        ]
    )


class _FarEnd:
    """The answers, each of a route."""

    def __init__(self, world: World) -> None:
        self._queue = Queue(lambda: world.clock().now())
        self._spare = SpareTime(world, self._queue)

    async def jobs(self, request: Request) -> Response:
        return JSONResponse({"jobs": self._queue.jobs(request.query_params.get("node"))})

    async def standings(self, _: Request) -> Response:
        running = [job for job in self._queue.jobs(None) if job["state"] == "running"]
        return JSONResponse({"jobs": running, "cordons": self._queue.cordons})

    async def place(self, request: Request) -> Response:
        wish = await request.json()
        job = self._queue.place(wish["name"], wish["owner"], wish["node"], float(wish["seconds"]))
        if job is None:
            return JSONResponse({"error": f"{wish['node']} is cordoned"}, status_code=409)
        self._spare.make_room(wish["node"])
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
        wanted = await request.json()
        return JSONResponse({name: self._queue.cordon(name, reason) for name, reason in wanted.items()})

    async def uncordon(self, request: Request) -> Response:
        self._queue.uncordon(request.path_params["node"])
        return JSONResponse({"cordon": ""})

    async def requeue(self, request: Request) -> Response:
        return JSONResponse({"jobs": self._queue.requeue(request.path_params["node"])})

    async def spare(self, request: Request) -> Response:
        return JSONResponse(await self._spare.run(request.path_params["node"], **await request.json()))
