"""`POST /api/v1/machines/seen`: what a DHCP server reports is recorded once, for the token's holder alone."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.boot.reports import MOST_MACHINES, parse_machine_report
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from tests.support.places import ROOT
from tests.support.site_of_agents import PATIENCE_S, Site, digest

TOKEN, NEXT = "token-of-the-dhcp-server-51c0", "its-next-token-93ee"
MAC = "02:00:5E:00:21:00"
SERVERS = {"dnsmasq": "dnsmasq", "kea": "kea-dhcp4"}


def report(*machines: Any) -> bytes:
    return json.dumps({"machines": machines}).encode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site that listens, where a DHCP server has a token."""
    site = Site(tmp_path_factory.mktemp("site"))
    spec = site.fleet / "specs/provisioning/lab1.yaml"
    tokens = [{"sha256": digest(TOKEN)}, {"file": str(site.home / "token")}]
    (site.home / "token").write_text(f"{NEXT}\n")
    spec.write_text(f"{spec.read_text()}\nreport_token: {json.dumps(tokens)}\n")
    site.serve()
    yield site
    site.end()


def post(site: Site, body: bytes, token: str = TOKEN) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{site.url}/api/v1/machines/seen", body, {"Authorization": f"Bearer {token}"} if token else {}
    )
    context = ssl.create_default_context(cafile=str(site.home / "ca.pem"))
    try:
        with urllib.request.urlopen(request, context=context, timeout=PATIENCE_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def read_seen(site: Site) -> list[dict[str, Any]]:
    ledger = Ledger.open(site.fleet / ".assay/ledger.sqlite")
    try:
        return [entry.body for entry in ledger.entries(kinds=["machine.seen"])]
    finally:
        ledger.close()


def test_a_report_is_recorded_once(site: Site) -> None:
    whole = {"serial": "S1", "bmc_mac": "02-00-5E-00-99-01", "address": "10.0.0.9", "model": "X", "rack": "r1", "u": 4}
    body = report(whole, {"serial": "S2"})
    assert post(site, body) == (200, {"reported": 2, "new": 2})
    assert post(site, body, NEXT) == (200, {"reported": 2, "new": 0})
    assert {"machine": {**whole, "bmc_mac": "02:00:5e:00:99:01"}, "source": "report"} in read_seen(site)


def test_only_the_token_opens_and_it_is_nowhere_told(site: Site) -> None:
    before, body = read_seen(site), report({"serial": "S3"})
    for token in ("", "guess", digest(TOKEN), f"sha256:{digest(TOKEN)}"):
        assert post(site, body, token)[0] == 401
    assert read_seen(site) == before
    assert TOKEN not in site.log("serve")


def test_a_body_that_is_too_long_is_refused_before_it_is_read(site: Site) -> None:
    context = ssl.create_default_context(cafile=str(site.home / "ca.pem"))
    line = http.client.HTTPSConnection("127.0.0.1", site.port, context=context, timeout=PATIENCE_S)
    with contextlib.closing(line):
        line.putrequest("POST", "/api/v1/machines/seen")
        line.putheader("Authorization", f"Bearer {TOKEN}")
        line.putheader("Content-Length", str(2**20 + 1))
        line.endheaders()
        assert line.getresponse().status == 413


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body"),
        (b"[" * 100_000, "the body"),
        (b'{"machines": []}', "machines"),
        (report({}), "give its serial, its bmc_mac or its mac"),
        (report({"serial": " "}), "give its serial, its bmc_mac or its mac"),
        (report({"serial": 7}), "machines.0.serial"),
        (report({"serial": "S", "u": "4"}), "machines.0.u"),
        (report({"serial": "S", "u": 61}), "machines.0.u"),
        (report({"serial": "S"}, {"bmc_mac": "02:00"}), "machines.1.bmc_mac"),
        (report({"serial": "S", "address": "10.0.0.256"}), "machines.0.address"),
        (report({"serial": "S", "fingerprint": "sha256:00"}), "machines.0.fingerprint"),
        (report({"serial": "x" * 65}), "machines.0.serial"),
        (report(*[{"serial": "S"}] * (MOST_MACHINES + 1)), "machines"),
    ],
)
def test_what_is_no_report_is_refused_with_the_field(site: Site, body: bytes, words: str) -> None:
    with pytest.raises(AssayError, match=words):
        parse_machine_report(body)


@given(st.text(min_size=1, max_size=64), st.text(max_size=200))
def test_what_a_machine_says_does_nothing_to_a_terminal(serial: str, model: str) -> None:
    if serial.strip():
        (machine,) = parse_machine_report(report({"serial": serial, "model": model}))
        assert (machine.serial + machine.model).isprintable()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(
    ("words", "environment", "found"),
    [
        (["add", MAC, "10.0.1.1", "a-name"], {}, {"02:00:5e:00:21:00": "10.0.1.1"}),
        (["old", f"06-{MAC}", "10.0.1.2"], {}, {"02:00:5e:00:21:00": "10.0.1.2"}),
        (["del", MAC, "10.0.1.3"], {}, {}),
        (["add", "00:01:00:01", "2001:db8::1"], {"DNSMASQ_IAID": "1"}, {}),
        (
            ["leases4_committed"],
            {
                "LEASES4_SIZE": "2",
                "LEASES4_AT0_HWADDR": "02:00:00:00:70:01",
                "LEASES4_AT0_ADDRESS": "10.0.7.1",
                "LEASES4_AT1_HWADDR": "02:00:00:00:70:02",
                "LEASES4_AT1_ADDRESS": "10.0.7.2",
            },
            {"02:00:00:00:70:01": "10.0.7.1", "02:00:00:00:70:02": "10.0.7.2"},
        ),
        (["lease4_renew"], {"LEASE4_HWADDR": MAC, "LEASE4_ADDRESS": "10.0.1.4"}, {"02:00:5e:00:21:00": "10.0.1.4"}),
    ],
)
def test_a_dhcp_server_calls_the_script(
    site: Site, words: list[str], environment: dict[str, str], found: dict[str, str]
) -> None:
    before = len(read_seen(site))
    answer = call_script(site, words, environment)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    told = [body["machine"] for body in read_seen(site)[before:]]
    assert {machine["bmc_mac"]: machine["address"] for machine in told} == found


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("mac", ['"}]}', "$(id)", "02:00:5e:00:21:00;id"])
def test_hostile_words_of_a_lease_reach_nobody(site: Site, mac: str) -> None:
    before = read_seen(site)
    assert call_script(site, ["add", mac, "10.0.1.1"], {}).returncode == 2
    assert read_seen(site) == before


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_dhcp_server_of_hosts_tells_no_address_of_a_bmc(site: Site) -> None:
    assert call_script(site, ["add", "02:00:5e:00:21:01", "10.0.2.1"], {"ASSAY_LEASES_OF": "host"}).returncode == 0
    assert read_seen(site)[-1] == {"machine": {"mac": "02:00:5e:00:21:01"}, "source": "report"}


@pytest.mark.slow(minutes=1)
@pytest.mark.parametrize("kind", ["dnsmasq", "kea"])
def test_a_real_dhcp_server_reports_its_lease(tmp_path: Path, kind: str) -> None:
    if missing := [name for name in ("curl", "busybox", "ip", SERVERS[kind]) if shutil.which(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a network namespace: let this machine's root call unshare")
    network = [sys.executable, "-m", "tests.tell.server.dhcp_network", kind, str(tmp_path)]
    answer = subprocess.run(["unshare", "-n", *network], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    (seen,) = json.loads(answer.stdout)
    assert seen == {"machine": {"bmc_mac": MAC.lower(), "address": "10.9.0.50"}, "source": "report"}


def call_script(site: Site, words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    header, settings = site.home / "seen.header", site.home / "seen.conf"
    header.write_text(f"Authorization: Bearer {TOKEN}\n")
    settings.write_text(f"ASSAY_URL={site.url}\nASSAY_CA={site.home / 'ca.pem'}\nASSAY_TOKEN_HEADER={header}\n")
    return subprocess.run(
        [str(ROOT / "deploy/assay-seen"), *words],
        env={"PATH": os.environ["PATH"], "ASSAY_SEEN_CONF": str(settings), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
