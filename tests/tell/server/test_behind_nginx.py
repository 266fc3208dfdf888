"""`deploy/nginx.conf` with a real nginx before `assay serve`: what it lets through, and what strangers may not."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator

import pytest

from assay.declare.home import find_home
from tests.support.places import ROOT
from tests.support.reserved_ports import reserve_ports
from tests.support.site_of_agents import PATIENCE_S, TOKENS, Site
from tests.tell.server.strangers import Caller, connect, is_closed, read_to_the_end, shake_hands, trust

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
CONFIGURATION = (ROOT / "deploy/nginx.conf").read_text()
POST = b"POST /agent/v1/nodes/n0003/batches HTTP/1.1\r\nHost: assay\r\n"
HEAD = POST + f"Authorization: Bearer {TOKENS['n0003']}\r\n".encode()
ACCESS = {"proxy": {"addresses": ["127.0.0.0/8"], "groups": {"ops": {"role": "operator"}}}}
AT_WORK = 6

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: tools/system-packages")


class Proxied(Site):
    """A site whose callers come to nginx: `behind` is the port of its server."""

    def serve(self) -> None:
        """Start the server, then nginx before it, with short deadlines."""
        self.behind = self.port
        chained = self.authority.issue_cert("127.0.0.1", "assay.example").private_key_and_cert_chain_pem
        chained.write_to_path(self.home / "server.pem")
        super().serve()
        (self.port,) = reserve_ports(1)
        key, chain = (self.home / name for name in ("nginx.key", "nginx.pem"))
        blocks = re.findall(r"-----BEGIN .*?-----END [^\n]*\n", (self.home / "server.pem").read_text(), re.DOTALL)
        key.write_text("".join(block for block in blocks if "PRIVATE KEY" in block))
        chain.write_text("".join(block for block in blocks if "PRIVATE KEY" not in block))
        changes = {
            r"pid /run": f"pid {self.home}",
            r"/var/(?:log|lib)/nginx": str(self.home),
            r"/etc/assay/server.pem": str(chain),
            r"/etc/assay/server.key": str(key),
            r"/etc/assay/ca.pem": str(self.home / "ca.pem"),
            r"127\.0\.0\.1:8444": f"127.0.0.1:{self.behind}",
            r"listen \[::\][^;]*;": "",
            r"listen 8443": f"listen 127.0.0.1:{self.port}",
            r"worker_rlimit_nofile \d+;": "",
            r"worker_connections 16384": "worker_connections 512",
            r"at_work 64": f"at_work {AT_WORK}",
            r"_timeout (10|30|75)s": "_timeout 3s",
        }
        text = CONFIGURATION
        for before, after in changes.items():
            text, count = re.subn(before, after, text)
            assert count, before
        (self.home / "nginx.conf").write_text(text)
        command = [str(NGINX), "-e", str(self.home / "error.log"), "-c", str(self.home / "nginx.conf")]
        subprocess.run([*command, "-t"], check=True, timeout=60)
        self.running.append(subprocess.Popen([*command, "-g", "daemon off; master_process off;"], text=True))
        self.wait_for(lambda: not self.is_refused(), "nginx listens")

    def is_refused(self) -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            connect(self).close()
            return False
        return True


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """Yield a site behind nginx, which believes a proxy on its machine."""
    site = Proxied(tmp_path_factory.mktemp("proxied"))
    policy = site.fleet / "specs/lifecycle/default.yaml"
    policy.write_text(f"{policy.read_text()}\naccess: {json.dumps(ACCESS)}\n")
    site.serve()
    yield site
    site.end()


def ask(site: Site, *headers: str, port: int = 0) -> bytes:
    """Return the first line of the answer to a question for all nodes."""
    line = trust(site).wrap_socket(
        socket.create_connection(("127.0.0.1", port or site.port), PATIENCE_S), server_hostname="127.0.0.1"
    )
    head = "\r\n".join(("GET /api/v1/nodes HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers))
    line.sendall(f"{head}\r\n\r\n".encode())
    return read_to_the_end(line).partition(b"\r\n")[0]


def silent(site: Site) -> socket.socket:
    return connect(site)


def half_a_handshake(site: Site) -> socket.socket:
    line, outgoing = connect(site), ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="assay")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    line.sendall(outgoing.read()[:100])
    return line


def no_request(site: Site) -> socket.socket:
    return shake_hands(site)


def half_a_header(site: Site) -> socket.socket:
    line = shake_hands(site)
    line.sendall(POST)
    return line


def half_a_body(site: Site) -> socket.socket:
    line = shake_hands(site)
    line.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
    return line


def a_second_header(site: Site) -> socket.socket:
    caller = Caller(site)
    assert caller.post() == 200
    caller.sock.sendall(POST)
    return caller.sock


@needs_nginx
@pytest.mark.parametrize("begin", [silent, half_a_handshake, no_request, half_a_header, half_a_body, a_second_header])
def test_who_does_not_go_on_is_closed(proxied: Proxied, begin) -> None:
    line = begin(proxied)
    proxied.wait_for(lambda: is_closed(line), "the connection is closed")
    assert Caller(proxied).post() == 200


@needs_nginx
def test_who_talks_on_without_an_end_is_closed(proxied: Proxied) -> None:
    line = half_a_header(proxied)

    def closed_while_talking() -> bool:
        try:
            line.sendall(b"X-More: 1\r\n")
        except OSError:
            return True
        return is_closed(line)

    proxied.wait_for(closed_while_talking, "the connection is closed")


@needs_nginx
def test_who_reads_nothing_is_closed(proxied: Proxied) -> None:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", proxied.port))
    tls = trust(proxied).wrap_socket(line, server_hostname="127.0.0.1")
    tls.settimeout(0.5)
    script = next((ROOT / "src/assay/tell").rglob("htmx*.js")).name
    with contextlib.suppress(OSError):
        for _ in range(2000):
            tls.sendall(f"GET /static/{script} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    time.sleep(6)  # nothing is read meanwhile
    tls.settimeout(60)
    proxied.wait_for(lambda: is_closed(tls), "the connection is closed")


@needs_nginx
def test_an_address_has_only_so_many_requests_at_work(proxied: Proxied) -> None:
    lines = [half_a_body(proxied) for _ in range(AT_WORK)]
    proxied.wait_for(lambda: Caller(proxied).post() == 503, "no more is taken")
    elsewhere = trust(proxied).wrap_socket(connect(proxied, "127.0.0.2"), server_hostname="127.0.0.1")
    elsewhere.sendall(HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
    assert b" 422 " in read_to_the_end(elsewhere), "another address is none the worse"
    proxied.wait_for(lambda: all(map(is_closed, lines)) and Caller(proxied).post() == 200, "they are over")


@needs_nginx
def test_sizes_are_held(proxied: Proxied) -> None:
    line = shake_hands(proxied)
    line.sendall(POST + b"X-More: 1\r\n" * 3000)
    assert b" 400 " in read_to_the_end(line).partition(b"\r\n")[0]
    line = shake_hands(proxied)
    line.sendall(HEAD + b"Content-Length: 9000000\r\n\r\n")
    assert b" 413 " in read_to_the_end(line).partition(b"\r\n")[0]


@needs_nginx
def test_nobody_passes_for_the_proxy_or_for_a_reader_on_this_machine(proxied: Proxied) -> None:
    claim = ("X-Forwarded-User: eve", "X-Forwarded-Groups: ops")
    assert b" 200 " in ask(proxied, *claim, port=proxied.behind), "who speaks to assay itself is believed"
    assert b" 401 " in ask(proxied, *claim)
    forged = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    line = shake_hands(proxied)
    line.sendall(forged)
    assert b" 401 " in read_to_the_end(line).partition(b"\r\n")[0]


@needs_nginx
def test_who_was_refused_is_on_record_with_its_address(proxied: Proxied) -> None:
    line = trust(proxied).wrap_socket(connect(proxied, "127.0.0.7"), server_hostname="127.0.0.1")
    line.sendall(POST + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
    assert b" 401 " in read_to_the_end(line)
    record = proxied.home / "assay-refused.log"
    proxied.wait_for(lambda: "127.0.0.7 - - " in record.read_text(), "the address is on record")
    assert '" 200 ' not in record.read_text()
    assert '"127.0.0.7"' in (find_home(proxied.fleet).folder / "refusals.jsonl").read_text(), "assay believes its proxy"


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"),
        ("2001:db8::5:6", "2001:db8"),
        ("fe80::1", "fe80"),
        ("192.0.2.7", None),
        ("::1", None),
    ],
)
def test_an_ipv6_network_counts_as_one_address_for_nginx(address: str, counted: str | None) -> None:
    (pattern,) = re.findall(r'"~(\^\(\?<network>.*?)" \$network;', CONFIGURATION)
    found = re.match(pattern.replace("?<", "?P<"), address)
    assert (found["network"] if found else None) == counted


def test_the_sizes_and_times_are_those_of_the_server() -> None:
    from assay.model.specs.serving import ConnectionLimits
    from assay.tell.server.intake_routes import MAX_BODY_BYTES

    limits = ConnectionLimits()
    assert f"client_max_body_size {MAX_BODY_BYTES // 1024**2}m;" in CONFIGURATION
    assert f"client_body_timeout {limits.body_seconds:g}s;" in CONFIGURATION
    assert f"keepalive_timeout {limits.idle_seconds:g}s;" in CONFIGURATION
    assert f"worker_connections {limits.total};" in CONFIGURATION
