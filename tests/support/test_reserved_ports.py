"""A port that a test reserved for its server is nobody else's."""

from __future__ import annotations

import socket

import pytest

from tests.support import reserved_ports
from tests.support.reserved_ports import reserve_ports


def test_no_port_is_given_twice_or_while_somebody_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("", 0)) as listening:
        taken = listening.getsockname()[1]
        monkeypatch.setattr(reserved_ports, "PORTS", (taken, *reserve_ports(1)))
        with pytest.raises(AssertionError, match=f"no port from {taken} to"):
            reserve_ports(1)


def test_the_kernel_chooses_none_of_them_for_a_connection() -> None:
    assert max(reserve_ports(20)) < 32768
