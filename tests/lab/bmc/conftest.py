"""A lab with running BMCs, and the clients for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redfish
import requests

from assay.declare.loader import load_fleet
from assay.lab.bmc.authentication import BmcLogins
from assay.lab.bmc.server import VirtualBmcs
from assay.lab.node.virtual_node import make_initial_state
from assay.lab.world import LabWorld
from assay.model.fleet import Fleet
from tests.support.places import ROOT

USER, PASSWORD = "operator", "a-long-secret"
START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


@dataclass
class Lab:
    """A running lab whose clock stands almost still: `pass_s` lets time go by at once."""

    world: LabWorld
    bmcs: VirtualBmcs

    def base(self, node: str = "n0003") -> str:
        return f"https://127.0.0.1:{self.bmcs.ports[node]}"

    def state(self, node: str = "n0003") -> dict[str, Any]:
        return self.world.load(node)

    def pass_s(self, seconds: float) -> None:
        self.world.jump(timedelta(seconds=seconds))

    def client(self, node: str = "n0003", user: str = USER, password: str = PASSWORD) -> Any:
        """Return the `redfish` library, unmodified, logged in with a session."""
        client = redfish.redfish_client(
            base_url=self.base(node),
            username=user,
            password=password,
            cafile=str(self.world.home / "ca.pem"),
            timeout=60,
        )
        client.login(auth=redfish.AuthMethod.SESSION)
        return client

    def http(self) -> requests.Session:
        """Return a plain HTTP client with Basic credentials that trusts this lab's authority and no other."""
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.world.home / "ca.pem")
        session.auth = (USER, PASSWORD)
        return session

    def ask(self, method: str, path: str, node: str = "n0003", **options: Any) -> requests.Response:
        with self.http() as session:
            return session.request(method, self.base(node) + path, timeout=options.pop("timeout", 60), **options)


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture
def healthy(fleet: Fleet) -> dict[str, Any]:
    """The state of a healthy node at START, as a real BMC would first see it."""
    return make_initial_state(fleet.nodes["n0003"], fleet.spec_of("n0003"), fleet.bundle_of("n0003"), START)


class Loop:
    """An asyncio loop in a thread of its own, as the lab's daemon has one in a process of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    async def _cancel_the_rest(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def close(self) -> None:
        self.run(self._cancel_the_rest())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(60)
        self.loop.close()


def furnish(world: LabWorld, fleet: Fleet, nodes: Sequence[str]) -> None:
    """Make the nodes healthy and new, and the time START, almost standing still."""
    world.home.mkdir(exist_ok=True)
    world.set_clock(START, 0.001)
    for node in nodes:
        with world.change(node) as state:
            state.clear()
            state.update(make_initial_state(fleet.nodes[node], fleet.spec_of(node), fleet.bundle_of(node), START))


def started(world: LabWorld, loop: Loop) -> Lab:
    bmcs = VirtualBmcs(world, credentials=f"{USER}:{PASSWORD}")
    loop.run(bmcs.start())
    return Lab(world, bmcs)


class Builder:
    """Starts labs of the named nodes, which live until the test ends."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet, self.folder, self.loop, self.labs = fleet, folder, Loop(), list[Lab]()

    def __call__(self, *nodes: str) -> Lab:
        world = LabWorld(self.folder / "lab")
        furnish(world, self.fleet, nodes)
        self.labs.append(started(world, self.loop))
        return self.labs[-1]

    def stop(self) -> None:
        for lab in self.labs:
            self.loop.run(lab.bmcs.stop())


@pytest.fixture
def build(fleet: Fleet, tmp_path: Path) -> Iterator[Builder]:
    builder = Builder(fleet, tmp_path)
    yield builder
    builder.stop()
    builder.loop.close()


@pytest.fixture(scope="session")
def standing(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of one node that all tests share, since starting one takes longer than most tests."""
    world, loop = LabWorld(tmp_path_factory.mktemp("standing") / "lab"), Loop()
    furnish(world, fleet, ["n0003"])
    lab = started(world, loop)
    yield lab
    loop.run(lab.bmcs.stop())
    loop.close()


@pytest.fixture
def lab(standing: Lab, fleet: Fleet) -> Lab:
    """The shared lab with its node healthy and new, and nobody logged in."""
    furnish(standing.world, fleet, ["n0003"])
    standing.bmcs.machines["n0003"].logins = BmcLogins(f"{USER}:{PASSWORD}")
    return standing
