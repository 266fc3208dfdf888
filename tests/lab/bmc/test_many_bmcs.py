"""Twenty BMCs in one process start together, cost nothing when idle, and answer many requests at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

NODES = [f"n{number:04}" for number in range(1, 21)]
SYSTEM = "/redfish/v1/Systems/System_0"


@pytest.mark.slow
def test_twenty_bmcs_start_and_answer_two_hundred_requests_at_once(build: Any) -> None:
    lab = build(*NODES)
    assert len(set(lab.bmcs.ports.values())) == len(NODES)
    wanted = [node for node in NODES for _ in range(10)]
    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(lambda node: lab.ask("GET", SYSTEM, node=node, timeout=30).json(), wanted))
    assert [answer["HostName"] for answer in answers] == wanted


@pytest.mark.slow
def test_twenty_idle_bmcs_take_next_to_no_processor_time(build: Any) -> None:
    build(*NODES)
    time.sleep(0.3)
    before, begin = time.process_time(), time.monotonic()
    time.sleep(1.5)
    assert (time.process_time() - before) / (time.monotonic() - begin) < 0.10


def test_they_stop_at_once_though_a_client_hangs(build: Any) -> None:
    lab = build("n0001", "n0002")
    with ThreadPoolExecutor(1) as pool, lab.http() as one:
        assert one.get(lab.base("n0001") + "/redfish/v1", timeout=60).ok  # so that it is connected before they stop
        with lab.world.change("n0001") as state:
            state["fails"]["bmc_silent"] = True
        hanging = pool.submit(one.get, lab.base("n0001") + SYSTEM, timeout=600)
        begin = time.monotonic()
        build.stop()
        assert time.monotonic() - begin < 300, "the one who hangs would wait for twice as long"
        assert isinstance(hanging.exception(), requests.ConnectionError)


def test_they_come_back_on_the_same_ports(build: Any) -> None:
    import asyncio

    from assay.lab.bmc.server import VirtualBmcs

    world = build(*NODES[:2]).world

    async def twice() -> tuple[dict[str, int], dict[str, int]]:
        first = VirtualBmcs(world, credentials="operator:a-long-secret")
        ports = await first.start()
        await first.stop()
        second = VirtualBmcs(world, credentials="operator:a-long-secret")
        again = await second.start(ports)
        await second.stop()
        return ports, again

    first, second = asyncio.run(twice())
    assert first == second
