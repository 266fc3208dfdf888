"""A DHCP relay: it asks a server for machines behind ports of two switches, as these do (RFC 2131, RFC 3046).

`python3 -I dhcp_relay.py ADDRESS` prints for each port what the server gives to a machine there: its address and name,
then whether it may keep them when it asks once more.
"""

from __future__ import annotations

import json
import socket
import struct
import sys

PORTS = {
    "leaf-7 Ethernet1/3": (b"Ethernet1/3", b"leaf-7"),
    "leaf-8 Ethernet1/3": (b"Ethernet1/3", b"leaf-8"),
    "leaf in bytes": (b"Ethernet1/9", b"\x00\x04leaf"),
    "leaf-9 Ethernet1/4": (b"Ethernet1/4", b"leaf-9"),
    "leaf-9 Ethernet1/3": (b"Ethernet1/3", b"leaf-9"),
}
UNKNOWN = "leaf-9 Ethernet1/3"
COOKIE = b"\x63\x82\x53\x63"
DISCOVER, OFFER, REQUEST, ACK = 1, 2, 3, 5
NAME, ADDRESS, KIND, SERVER = 12, 50, 53, 54


def make_option(number: int, value: bytes) -> bytes:
    return bytes((number, len(value))) + value


def make_request(kind: int, relay: str, mac: bytes, port: tuple[bytes, bytes], more: bytes = b"") -> bytes:
    head = struct.pack("!BBBBIHH", 1, 1, 6, 1, int.from_bytes(mac[-4:], "big"), 0, 0)
    addresses = bytes(12) + socket.inet_aton(relay)
    of_relay = make_option(82, make_option(1, port[0]) + make_option(2, port[1]))
    options = make_option(KIND, bytes((kind,))) + make_option(55, bytes((1, NAME))) + more + of_relay
    return head + addresses + mac.ljust(16, b"\0") + bytes(192) + COOKIE + options + b"\xff"


def read_options(answer: bytes) -> dict[int, bytes]:
    options: dict[int, bytes] = {}
    rest = answer[240:]
    while rest and rest[0] != 255:
        if rest[0] == 0:
            rest = rest[1:]
            continue
        options[rest[0]] = rest[2 : 2 + rest[1]]
        rest = rest[2 + rest[1] :]
    return options


class Relay:
    """It speaks from its own address to the server, which answers there."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 67))
        self.socket.settimeout(1)

    def ask(self, kind: int, mac: bytes, port: tuple[bytes, bytes], more: bytes = b"", tries: int = 30) -> bytes:
        for _ in range(tries):
            self.socket.sendto(make_request(kind, self.address, mac, port, more), ("10.20.0.1", 67))
            try:
                return self.socket.recv(2000)
            except TimeoutError:
                continue
        return b""

    def lease(self, number: int, port: tuple[bytes, bytes], tries: int) -> list[str]:
        mac = bytes((2, 0, 0, 0, 0, number + 1))
        offer = self.ask(DISCOVER, mac, port, tries=tries)
        if not offer:
            return []
        more = make_option(ADDRESS, offer[16:20]) + make_option(SERVER, read_options(offer)[SERVER])
        given = [self.ask(REQUEST, mac, port, more), self.ask(REQUEST, mac, port, make_option(ADDRESS, offer[16:20]))]
        kinds = [read_options(answer)[KIND] for answer in given]
        name = read_options(given[0]).get(NAME, b"").decode()
        return [socket.inet_ntoa(given[0][16:20]), name, "kept" if kinds == [bytes((ACK,))] * 2 else str(kinds)]


if __name__ == "__main__":
    relay = Relay(sys.argv[1])
    relay.ask(DISCOVER, bytes((2, 0, 0, 0, 9, 9)), PORTS["leaf-7 Ethernet1/3"], tries=100)  # until the server is there
    tries = {name: 3 if name == UNKNOWN else 30 for name in PORTS}
    leases = {name: relay.lease(number, port, tries[name]) for number, (name, port) in enumerate(PORTS.items())}
    json.dump(leases, sys.stdout)
