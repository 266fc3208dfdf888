"""Without a token, each connection ends by a deadline, there are only so many, and agents get through meanwhile."""

from __future__ import annotations

import json
import ssl

import pytest
from site_of_agents import TOKENS, Site, batch
from strangers import Caller, connect, count_open, is_closed, open_connections, read_to_the_end, shake_hands, wait_until

from assay.web.connection_table import group_address

POST = b"POST /agent/v1/nodes/n0003/batches HTTP/1.1\r\nHost: assay\r\n"
SHORT = {"token_seconds": 3, "header_seconds": 3, "body_seconds": 3, "idle_seconds": 3}  # others load this machine


@pytest.fixture(scope="module")
def brief(tmp_path_factory):
    """Yield a site whose server waits for nobody longer than three seconds."""
    site = Site(tmp_path_factory.mktemp("brief"))
    site.limit(connections=SHORT)
    site.serve()
    yield site
    site.end()


def silent(site):
    return connect(site)


def half_a_handshake(site):
    line, outgoing = connect(site), ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="assay")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    line.sendall(outgoing.read()[:100])
    return line


def no_request(site):
    return shake_hands(site)


def half_a_header(site):
    line = shake_hands(site)
    line.sendall(POST)
    return line


def half_a_body(site):
    line = shake_hands(site)
    line.sendall(POST + b"Content-Length: 1000\r\n\r\n{")
    return line


@pytest.mark.parametrize("begin", [silent, half_a_handshake, no_request, half_a_header, half_a_body])
def test_a_stranger_is_closed_after_its_time_whatever_it_has_sent(brief, begin):
    line = begin(brief)
    brief.wait_for(lambda: is_closed(line), "the connection is closed")
    assert "no good token within 3 s" in (brief.fleet / ".assay/refusals.jsonl").read_text()


def test_a_stranger_that_goes_on_talking_is_closed_all_the_same(brief):
    line = shake_hands(brief)
    line.sendall(POST)

    def closed_while_talking() -> bool:
        try:
            line.sendall(b"X-More: 1\r\n")
        except OSError:
            return True
        return is_closed(line)

    brief.wait_for(closed_while_talking, "the connection is closed")


def test_an_agent_too_must_end_its_headers_and_bodies_and_not_wait_for_ever(brief):
    head = POST + f"Authorization: Bearer {TOKENS['n0003']}\r\n".encode()
    for rest, answer in ((b"", b""), (b"Content-Length: 1000\r\n\r\n{", b" 408 "), (None, b"")):
        caller = Caller(brief)
        assert caller.post() == 200
        if rest is not None:
            caller.sock.sendall(head + rest)
        caller.sock.settimeout(60)
        assert answer in read_to_the_end(caller.sock)


@pytest.mark.parametrize(
    ("addresses", "scheme"),
    [
        (100, "http"),
        pytest.param(1, "http", marks=pytest.mark.slow),
        pytest.param(1, "https", marks=pytest.mark.slow),
        pytest.param(100, "https", marks=pytest.mark.slow),
    ],
)
def test_thousands_of_idle_connections_keep_no_agent_waiting(site, scheme, addresses):
    site.scheme = scheme
    site.serve()
    working = Caller(site)
    assert working.post() == 200
    lines = open_connections(site, 4200, addresses)
    assert len(lines) > 1000
    assert site.post("n0004", json.dumps(batch("n0004")).encode())[0] == 200, "a new agent is answered"
    assert working.post() == 200, "an agent that was connected is answered on its connection"
    most = 64 if addresses == 1 else 1024
    site.wait_for(lambda: count_open(lines) <= most, "only so many are left")
    assert working.post() == 200
    audit = (site.fleet / ".assay/refusals.jsonl").read_text()
    assert f"more than {most} connections without a token" in audit


def test_of_many_addresses_the_one_with_a_single_connection_keeps_it(site):
    site.limit(connections={"strangers": 8, "token_seconds": 60})
    site.serve()
    single = connect(site, "127.0.0.200")
    lines = open_connections(site, 40, 4)
    site.wait_for(lambda: count_open(lines) == 7, "the others give way")
    assert not is_closed(single)


def test_when_all_places_are_taken_strangers_give_way_and_then_idle_agents(site):
    site.limit(connections={"total": 16, "token_seconds": 60})
    site.serve()
    callers = [Caller(site, name) for name in list(TOKENS)[:7] for _ in range(2)]
    assert {caller.post() for caller in callers} == {200}
    strangers = open_connections(site, 2)
    more = Caller(site, "n0012")
    site.wait_for(lambda: is_closed(strangers[0]), "the older stranger has given way")
    assert [more.post(), is_closed(strangers[1])] == [200, False]
    more = [more, Caller(site, "n0011")]
    site.wait_for(lambda: is_closed(strangers[1]), "the other stranger has given way")
    assert {caller.post() for caller in (*callers, *more)} == {200}
    more += [Caller(site, "n0010")]
    site.wait_for(lambda: is_closed(callers[0].sock), "the agent that has been there for longest has given way")
    assert {caller.post() for caller in (*callers[1:], *more)} == {200}


def test_one_token_has_only_so_many_connections(site):
    site.limit(connections={"per_token": 2})
    site.serve()
    callers = [Caller(site) for _ in range(3)]
    assert [caller.post() for caller in callers] == [200, 200, 200]
    wait_until(site, lambda: is_closed(callers[0].sock), "the oldest is closed")
    assert [caller.post() for caller in callers[1:]] == [200, 200]


def test_an_address_may_connect_only_so_often(site):
    site.limit(connections={"new_at_once": 20, "new_per_second": 0.01, "token_seconds": 60})
    site.serve()
    lines = open_connections(site, 40)
    site.wait_for(lambda: count_open(lines) <= 20, "the rest is closed at once")
    assert "new connections a second" in (site.fleet / ".assay/refusals.jsonl").read_text()
    assert not is_closed(connect(site, "127.0.0.2")), "another address is none the worse"


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
