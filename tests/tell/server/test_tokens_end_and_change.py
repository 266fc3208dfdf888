"""A token that the inventory no longer has is refused at once, two may be good at a time, refusals are on record."""

from __future__ import annotations

import json
import os
import signal
import ssl

import trustme

from tests.support.site_of_agents import Site, batch, digest
from tests.tell.server.strangers import Caller

OLD, NEW = "the-old-token-7d11", "the-new-token-9a42"
BODY = json.dumps(batch()).encode()


def declare(site: Site, tokens: object) -> None:
    """Declare what the agent of n0003 must present, as a pull request would."""
    hosts = {"n0003": {"agent_token": tokens}} if tokens is not None else {"n0003": {}}
    (site.fleet / "inventory/agents.yml").write_text(json.dumps({"h100-a": {"hosts": hosts}}))


def wait_for_reload(site: Site, times: int) -> None:
    site.wait_for(lambda: site.log("serve").count("read the fleet again") >= times, "the server reads the fleet")


def refusals(site: Site) -> list[dict]:
    return [json.loads(line) for line in (site.fleet / ".assay/refusals.jsonl").read_text().splitlines()]


def test_a_token_that_was_changed_or_removed_is_refused_on_the_open_connection(site):
    declare(site, {"sha256": digest(OLD)})
    site.serve()
    caller = Caller(site, token=OLD)
    assert caller.post() == 200
    declare(site, {"sha256": digest(NEW)})
    wait_for_reload(site, 1)
    assert caller.post() == 401
    assert Caller(site, token=NEW).post() == 200
    declare(site, None)
    wait_for_reload(site, 2)
    assert Caller(site, token=NEW).post() == 401
    assert [one["reason"] for one in refusals(site)] == ["not a token of the node", "the node has no agent_token"]


def test_a_secret_that_was_changed_counts_no_longer_though_it_was_good_a_moment_ago(site):
    secret = site.home / "secret"
    secret.write_text(OLD)
    declare(site, {"file": str(secret)})
    site.serve()
    assert site.post("n0003", BODY, OLD)[0] == 200
    secret.write_text(NEW)
    site.wait_for(lambda: site.post("n0003", BODY, OLD)[0] == 401, "the old one is refused")
    site.wait_for(lambda: site.post("n0003", BODY, NEW)[0] == 200, "the new one is good")


def test_two_tokens_are_good_while_one_replaces_the_other(site):
    secret = site.home / "secret"
    secret.write_text(f"sha256:{digest(NEW)}")
    declare(site, [{"sha256": digest(OLD)}, {"file": str(secret)}])
    site.serve()
    assert [site.post("n0003", BODY, token)[0] for token in (OLD, NEW, OLD, "another")] == [200, 200, 200, 401]
    declare(site, [{"file": str(secret)}])
    wait_for_reload(site, 1)
    assert [site.post("n0003", BODY, token)[0] for token in (NEW, OLD)] == [200, 401]


def test_each_refusal_is_on_record_without_a_token_and_repetitions_as_a_number(site):
    site.serve()
    for name, token in (("n0003", "guess-5512"), ("nobody", "guess-5512"), ("n0001", "guess-5512"), ("n0003", "")):
        site.post(name, BODY, token)
    kinds = {(one["address"], one["claims"], one["reason"], one["count"]) for one in refusals(site)}
    assert kinds == {
        ("127.0.0.1", "n0003", "not a token of the node", 1),
        ("127.0.0.1", "nobody", "the inventory has no such node", 1),
        ("127.0.0.1", "n0001", "the node has no agent_token", 1),
        ("127.0.0.1", "n0003", "no token", 1),
    }
    site.post("x" * 5000, BODY, "guess-5512")
    for _ in range(30):
        site.post("n0003", BODY, "guess-5512")
    site.kill(site.server, signal.SIGTERM)
    assert refusals(site)[-1] | {"at": ""} == {
        "at": "",
        "address": "127.0.0.1",
        "claims": "n0003",
        "reason": "not a token of the node",
        "count": 30,
    }
    everything = (site.fleet / ".assay/refusals.jsonl").read_text() + site.log("serve")
    assert "guess-5512" not in everything
    assert max(len(one["claims"]) for one in refusals(site)) == 100
    assert (site.fleet / ".assay/refusals.jsonl").stat().st_mode & 0o777 == 0o600


def served_certificate(site: Site) -> str:
    """Return the certificate that a new connection is shown, without a server name."""
    return ssl.get_server_certificate(("127.0.0.1", site.port))


def test_sighup_reads_certificate_secrets_and_fleet_and_ends_no_connection(site):
    program = site.home / "secret"
    program.write_text(f"#!/bin/sh\necho {OLD}\n")
    program.chmod(0o700)
    declare(site, {"command": [str(program)]})
    site.serve()
    caller, before = Caller(site, token=OLD), served_certificate(site)
    assert caller.post() == 200
    program.write_text(f"#!/bin/sh\necho {NEW}\n")
    site.authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        site.home / "server.pem"
    )
    os.kill(site.server.pid, signal.SIGHUP)
    site.wait_for(lambda: "read the certificate again" in site.log("serve"), "the certificate was read")
    assert served_certificate(site) != before
    assert caller.post() == 401, "the connection is open, and the old secret is forgotten"
    assert Caller(site, token=NEW).post() == 200


def test_a_certificate_that_cannot_be_read_is_reported_and_the_one_before_it_stays(site):
    site.serve()
    before = served_certificate(site)
    trustme.CA().issue_cert("127.0.0.1").cert_chain_pems[0].write_to_path(site.home / "server.pem")  # and no key
    said = "goes on with the certificate that was read before"
    for _ in range(2):
        os.kill(site.server.pid, signal.SIGHUP)
        site.wait_for(lambda: said in site.log("serve"), "the server says so")
    assert site.log("serve").count(said) == 1
    assert served_certificate(site) == before
    assert site.post("n0003", BODY)[0] == 200


def test_a_fleet_with_an_error_keeps_the_tokens_that_were_good_before(site):
    declare(site, {"sha256": digest(OLD)})
    site.serve()
    assert site.post("n0003", BODY, OLD)[0] == 200
    (site.fleet / "inventory/agents.yml").write_text("h100-a: [no, inventory]\n")
    site.wait_for(lambda: "inventory/agents.yml" in site.log("serve"), "the server tells the error")
    assert site.post("n0003", BODY, OLD)[0] == 200
    assert site.post("n0003", BODY, NEW)[0] == 401
