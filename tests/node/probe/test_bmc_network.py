"""The probe asks which ports of an address answer this node: a listener, a refusal, IPMI over LAN, and nobody."""

from __future__ import annotations

import socket
import threading

from assay.node.probe import named_settings
from assay.node.probe.named_settings import read_reach

NOWHERE = "255.255.255.255"


def test_who_listens_and_who_refuses_answer_and_nobody_does_not():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"{port}/tcp" in read_reach("127.0.0.1", [port])["answers"]["value"]
    assert f"{port}/tcp" in read_reach("127.0.0.1", [port])["answers"]["value"], "refused: who did is not known"
    assert read_reach(NOWHERE, [443, 22]) == {"answers": {"value": []}}


def test_ipmi_over_lan_answers_the_presence_ping(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bmc:
        bmc.bind(("127.0.0.1", 0))
        port = bmc.getsockname()[1]
        monkeypatch.setattr(named_settings, "IPMI_PORT", port)
        got: list[bytes] = []

        def answer() -> None:
            ping, sender = bmc.recvfrom(64)
            got.append(ping)
            bmc.sendto(b"\x06\x00\xff\x06\x00\x00\x11\xbe\x40\x00\x00\x10" + bytes(16), sender)

        thread = threading.Thread(target=answer)
        thread.start()
        assert read_reach("127.0.0.1", []) == {"answers": {"value": [f"{port}/udp"]}}
        thread.join()
    assert got[0][4:9] == b"\x00\x00\x11\xbe\x80"


def test_an_address_that_nobody_finds_is_a_failed_reading():
    assert "failed" in read_reach("bmc.invalid", [443])
