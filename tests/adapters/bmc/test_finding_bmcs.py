"""BMCs are found at addresses without a secret, and say what they are to those who may log in."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.scan import (
    ANSWER_S,
    ASKED_AT_ONCE,
    FoundBmc,
    ask_service_root,
    list_addresses,
    read_machine,
    scan_service_roots,
)
from assay.adapters.bmc.session import UserPassword, read_bmc_credentials
from assay.model.errors import AssayError
from assay.model.specs.machines import SeenMachine
from tests.support.bmc_rehearsal import PASSWORD, USER

MANAGER, NICS = "/redfish/v1/Managers/1", "/redfish/v1/Managers/1/EthernetInterfaces"


@pytest.fixture
def stranger() -> Iterator[int]:
    """Yield the port of a service that speaks no TLS and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def hang_up() -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=hang_up, daemon=True).start()
    yield server.getsockname()[1]
    server.close()


@pytest.mark.parametrize("ends", [(1, 250), (4, 7), (0, 255), (9, 9)])
def test_no_address_of_a_range_is_left_out(ends: tuple[int, int]) -> None:
    first, last = ends
    asked = list_addresses([f"10.1.0.{first}-10.1.0.{last}"])
    assert asked == [f"10.1.0.{number}" for number in range(first, last + 1)]


def test_ranges_are_addresses() -> None:
    assert list_addresses(
        ["10.1.0.0/30", "10.1.0.9 - 10.1.0.10", "10.1.0.1", "fd00::1", "10.2.0.0/31", "10.3.0.0/32"]
    ) == [*("10.1.0.1", "10.1.0.2", "10.1.0.9", "10.1.0.10", "fd00::1", "10.2.0.0", "10.2.0.1", "10.3.0.0")]


@pytest.mark.parametrize("text", ["10.1.0.0/33", "n0003", "10.1.0.9-10.1.0.1", "10.0.0.0/8", "10.0.0.1-fd00::1", ""])
def test_what_is_no_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AssayError) as refused:
        list_addresses([text])
    assert "at once" in str(refused.value) or "10.1.0.5-10.1.0.9" in str(refused.value)


def test_a_bmc_is_found_without_a_login(tiny: Any) -> None:
    (found,) = scan_service_roots(list_addresses(["127.0.0.1", "127.0.0.2"]), tiny.port)
    assert (found.address, found.fingerprint[:7], len(found.fingerprint)) == ("127.0.0.1", "sha256:", 71)
    assert tiny.asked == ["/redfish/v1/"]


def test_a_bmc_that_shows_its_root_after_a_login_is_found_too(tiny: Any) -> None:
    tiny.odd["/redfish/v1"] = tiny.status(401, "log in")
    assert ask_service_root("127.0.0.1", tiny.port)


@pytest.mark.parametrize("body", [[], {"kind": "Status"}, "RedfishVersion"])
def test_another_service_is_no_bmc(tiny: Any, body: Any) -> None:
    tiny.odd["/redfish/v1"] = tiny.whole(body)
    assert ask_service_root("127.0.0.1", tiny.port) is None


def test_a_service_without_tls_is_no_bmc(stranger: int) -> None:
    assert ask_service_root("127.0.0.1", stranger) is None


def test_a_machine_says_what_it_is_after_the_login(tiny: Any) -> None:
    system = next(one for path, one in tiny.tree.items() if "/Systems/" in path and "SerialNumber" in one)
    system |= {"Manufacturer": "Box Inc", "Model": "Box 8", "Links": {"ManagedBy": [{"@odata.id": MANAGER}]}}
    tiny.tree[MANAGER] = {"@odata.id": MANAGER, "EthernetInterfaces": {"@odata.id": NICS}}
    tiny.tree[NICS] = {"Members": [{"@odata.id": f"{NICS}/usb0"}, {"@odata.id": f"{NICS}/eth0"}]}
    tiny.tree[f"{NICS}/usb0"] = {"MACAddress": "02:00:00:00:00:01", "IPv4Addresses": [{"Address": "169.254.0.1"}]}
    tiny.tree[f"{NICS}/eth0"] = {"MACAddress": "02-00-5E-00-21-00", "IPv4Addresses": [{"Address": "127.0.0.1"}]}
    found = ask_service_root("127.0.0.1", tiny.port)
    assert found
    machine = read_machine(found, tiny.port, UserPassword(USER, PASSWORD), BmcQuirkSet())
    said = ("127.0.0.1", "02:00:5e:00:21:00", system["SerialNumber"], "Box Inc", "Box 8", found.fingerprint)
    assert machine == SeenMachine(*said)


def test_another_bmc_at_the_address_gets_no_credentials(tiny: Any) -> None:
    with pytest.raises(AssayError, match="not the one that bmc_fingerprint pins"):
        read_machine(
            FoundBmc("127.0.0.1", f"sha256:{'0' * 64}"), tiny.port, UserPassword(USER, PASSWORD), BmcQuirkSet()
        )
    assert tiny.asked == []


def test_a_node_of_the_lab_says_where_it_stands(rehearsal: Any) -> None:
    node = rehearsal.fleet.nodes["n0003"]
    found = ask_service_root(node.bmc_address, node.settings.bmc_port)
    assert found
    credentials = read_bmc_credentials(node, rehearsal.root)
    machine = read_machine(found, node.settings.bmc_port, credentials, BmcQuirkSet())
    assert (machine.serial, machine.rack, machine.u) == (node.serial, node.rack, node.u)


class Root(asyncio.Protocol):
    """A service that knows its root only."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        root = b'{"RedfishVersion": "1.15.0", "Vendor": "V"}'
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(root), root))


@pytest.fixture
def thousand(authority: trustme.CA) -> Iterator[int]:
    """Yield the port at which the addresses of 127.9.0 and 127.9.1 answer as BMCs; all others never say a word."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.9.0.1").configure_cert(context)
    loop, silent = asyncio.new_event_loop(), list[socket.socket]()

    async def accept(listener: socket.socket) -> None:
        while True:
            asked, _ = await loop.sock_accept(listener)
            if asked.getsockname()[0].startswith(("127.9.0.", "127.9.1.")):
                loop.create_task(loop.connect_accepted_socket(Root, asked, ssl=context))
            else:
                silent.append(asked)

    with socket.create_server(("0.0.0.0", 0), backlog=128) as listener:
        listener.setblocking(False)
        task = loop.create_task(accept(listener))
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        yield listener.getsockname()[1]
        loop.call_soon_threadsafe(task.cancel)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for one in silent:
            one.close()


@pytest.mark.slow
def test_a_thousand_addresses_of_which_half_are_silent_are_asked_within_a_minute(thousand: int) -> None:
    ranges = [f"127.9.{block}.1-127.9.{block}.250" for block in range(4)]
    asked, begun = list[int](), time.process_time()
    found = list(scan_service_roots(list_addresses(ranges), thousand, lambda: asked.append(len(asked))))
    spent = time.process_time() - begun
    assert [bmc.address for bmc in found] == list_addresses(ranges[:2])
    assert len(asked) == 1000, "progress is told of each"
    waited = 500 / ASKED_AT_ONCE * ANSWER_S
    assert spent + waited < 60, "CPU time, as this machine may be busy, and the time for silent addresses"
