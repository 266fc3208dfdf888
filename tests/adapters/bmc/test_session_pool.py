"""A session with a BMC serves many reads, and is closed at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.session import BmcSessionPool
from assay.observe.evidence_collector import read_bmc_channel


def read(tiny: Any, ca_file: Path, sessions: BmcSessionPool) -> Any:
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 10.0, sessions=sessions)


def logins(tiny: Any) -> int:
    return sum(path.startswith("POST") for path in tiny.asked)


def test_one_login_serves_all_reads_and_the_end_logs_out(tiny: Any, ca_file: Path) -> None:
    sessions = BmcSessionPool()
    first = read(tiny, ca_file, sessions)
    assert [read(tiny, ca_file, sessions) for _ in range(3)] == [first] * 3
    assert (logins(tiny), len(tiny.sessions)) == (1, 1)
    sessions.close()
    assert not tiny.sessions


def test_a_session_that_the_bmc_forgot_is_opened_anew(tiny: Any, ca_file: Path) -> None:
    sessions = BmcSessionPool()
    first = read(tiny, ca_file, sessions)
    tiny.sessions.clear()
    assert read(tiny, ca_file, sessions) == first
    assert (logins(tiny), len(tiny.sessions)) == (2, 1)
    sessions.close()


def test_another_password_opens_another_session(tiny: Any, ca_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = BmcSessionPool()
    read(tiny, ca_file, sessions)
    monkeypatch.setenv("TINY_BMC", "watcher:wrong")
    assert "refuses the user or the password" in read(tiny, ca_file, sessions)["failed"]
    sessions.close()


def test_after_the_end_nothing_is_kept(tiny: Any, ca_file: Path) -> None:
    sessions = BmcSessionPool()
    sessions.close()
    read(tiny, ca_file, sessions)
    assert not tiny.sessions


def test_a_silent_bmc_is_not_kept(tiny: Any, ca_file: Path) -> None:
    sessions = BmcSessionPool()
    read(tiny, ca_file, sessions)
    tiny.odd = {"/redfish/v1": tiny.silence}
    assert "failed" in read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 0.5, sessions=sessions)
    assert not sessions._sessions
