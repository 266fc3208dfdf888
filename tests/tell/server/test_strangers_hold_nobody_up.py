"""What `assay serve` itself holds against strangers: connections in all, headers, bodies. The rest is nginx's."""

from __future__ import annotations

import json

import pytest

from assay.tell.server.app_state import group_address
from tests.support.site_of_agents import TOKENS, batch
from tests.tell.server.strangers import Caller, open_connections, read_to_the_end, shake_hands

POST = b"POST /agent/v1/nodes/n0003/batches HTTP/1.1\r\nHost: assay\r\n"
HEAD = POST + f"Authorization: Bearer {TOKENS['n0003']}\r\n".encode()


def test_a_body_has_its_time_and_a_connection_between_two_requests_too(site):
    site.limit(connections={"body_seconds": 3, "idle_seconds": 3})
    site.serve()
    caller = Caller(site)
    assert caller.post() == 200
    caller.sock.settimeout(60)
    assert read_to_the_end(caller.sock) == b""
    line = shake_hands(site)
    line.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert b" 408 " in read_to_the_end(line)


def test_a_header_has_its_size(shared):
    line = shake_hands(shared)
    line.sendall(POST + b"X-More: 1\r\n" * 3000)
    assert b" 400 " in read_to_the_end(line).partition(b"\r\n")[0]


def test_above_all_connections_requests_get_a_503(site):
    site.limit(connections={"total": 16})
    site.serve()
    lines = [shake_hands(site) for _ in range(16)]
    assert Caller(site).post() == 503
    for line in lines:
        line.close()
    site.wait_for(lambda: Caller(site).post() == 200, "the others have gone")


def test_thousands_of_idle_connections_keep_no_agent_waiting(site):
    site.scheme = "http"
    site.serve()
    working = Caller(site)
    assert working.post() == 200
    assert len(open_connections(site, 4200, 100)) > 1000
    assert site.post("n0004", json.dumps(batch("n0004")).encode())[0] == 200, "a new agent is answered"
    assert working.post() == 200, "an agent that was connected is answered on its connection"


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_an_ipv6_network_counts_as_one_address(host, counted):
    assert group_address(host) == counted
