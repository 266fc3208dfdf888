"""Whom we believe to be a BMC: one authority, or one certificate; the line tells before anything secret is sent."""

from __future__ import annotations

import hashlib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from assay.observe.evidence_collector import read_bmc_channel
from tests.support.bmc_rehearsal import PASSWORD, USER, serve_tiny


def pin_of(tiny: Any) -> str:
    pem = ssl.get_server_certificate(("127.0.0.1", tiny.port))
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def coloned(pin: str) -> str:
    return ":".join(pin[place : place + 2] for place in range(0, 64, 2)).upper()


@pytest.mark.parametrize("spelled", [str, coloned])
def test_the_pinned_certificate_is_accepted_whoever_signed_it_and_however_it_is_written(
    tiny: Any, spelled: Any
) -> None:
    node = tiny.node(bmc_fingerprint=f"sha256:{spelled(pin_of(tiny))}")
    assert read_bmc_channel(node, Path(), 60)["system"]["power"] == {"value": "On"}


def test_a_bmc_with_an_ipv6_address_is_read(
    authority: trustme.CA, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_BMC", f"{USER}:{PASSWORD}")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serve_tiny(authority, "::1") as bmc:
        node = bmc.node(bmc_address="::1", bmc_ca=str(ca_file))
        assert read_bmc_channel(node, Path(), 60)["system"]["power"] == {"value": "On"}


def test_any_other_certificate_is_refused_before_a_word_is_said(tiny: Any) -> None:
    seen = read_bmc_channel(tiny.node(bmc_fingerprint="sha256:" + "0a" * 32), Path(), 60)
    assert seen["failed"].startswith("its certificate is not the one that bmc_fingerprint pins: it shows sha256:")
    assert tiny.asked == []


def test_a_pin_does_not_widen_the_trust_of_other_nodes(tiny: Any) -> None:
    read_bmc_channel(tiny.node(bmc_fingerprint=f"sha256:{pin_of(tiny)}"), Path(), 60)
    assert "not accepted by the system's authorities" in read_bmc_channel(tiny.node(), Path(), 60)["failed"]
