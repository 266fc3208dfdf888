"""A lab with BMCs that listen, and the ways in which clients come to them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redfish
import requests

from assay.fleet.load import load_fleet
from assay.lab.bmc import Bmcs
from assay.lab.node import initial_state
from assay.lab.world import World
from assay.model.fleet import Fleet

USER, PASSWORD = "operator", "a-long-secret"
START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/System_0"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INVENTORY = f"{ROOT}/UpdateService/FirmwareInventory"
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Lab:
    """A running lab whose clock stands almost still: `pass_s` lets time go by at once."""

    world: World
    bmcs: Bmcs
    started_in_s: float = 0.0

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
            timeout=10,
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
            return session.request(method, self.base(node) + path, timeout=options.pop("timeout", 10), **options)


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return load_fleet(REPOSITORY)


@pytest.fixture
def healthy(fleet: Fleet) -> dict[str, Any]:
    """The state of a healthy node at START, as a real BMC would first see it."""
    return initial_state(fleet.nodes["n0003"], fleet.spec_of("n0003"), fleet.bundle_of("n0003"), START)


@pytest.fixture
def build(fleet: Fleet, tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Start a lab of the named nodes; it is stopped after the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started: list[Bmcs] = []

    def start(*nodes: str, rate: float = 0.001) -> Lab:
        world = World(tmp_path / "lab")
        world.home.mkdir(exist_ok=True)
        world.set_clock(START, rate)
        for node in nodes:
            with world.change(node) as state:
                state.update(initial_state(fleet.nodes[node], fleet.spec_of(node), fleet.bundle_of(node), START))
        bmcs = Bmcs(world, credentials=f"{USER}:{PASSWORD}")
        begin = loop.time()
        asyncio.run_coroutine_threadsafe(bmcs.start(), loop).result(30)
        started.append(bmcs)
        return Lab(world, bmcs, loop.time() - begin)

    yield start
    for bmcs in started:
        asyncio.run_coroutine_threadsafe(bmcs.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.fixture
def lab(build: Callable[..., Lab]) -> Lab:
    return build("n0003")
