"""One-time tokens on a real ledger: one of two servers takes a token, and a replay is told and answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from assay.act.boot.joins import (
    REPLAY_FAULT,
    JoinRefusedError,
    JoinRequest,
    hash_token,
    issue_token,
    use_token,
)
from tests.act.quiet_site import Site
from tests.ledger.forks import Forked

ASKED = JoinRequest("n0003", "a1", "kubernetes")
TAKEN, REFUSED = "taken", "refused"


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A quiet site on each kind of ledger."""
    place = tmp_path / "ledger.sqlite" if request.param == "sqlite" else request.getfixturevalue("database")
    made = Site(place, tmp_path / "home")
    yield made
    made.ledger.close()


def issue(site: Site, asked: JoinRequest = ASKED, minutes: int = 15) -> str:
    now = site.clock.now()
    return issue_token(site.ledger, asked, "tpm", now + timedelta(minutes=minutes), now)


def kinds(site: Site, node: str = ASKED.node) -> list[str]:
    return [entry.kind for entry in site.ledger.entries(node) if entry.kind.startswith(("join.", "fault"))]


def race(line: Connection, place: str, home: Path, token: str) -> None:
    """Try to use a token as soon as the test says so."""
    site = Site(place, home)
    line.send("ready")
    line.recv()
    try:
        use_token(site.desk, ASKED, token)
        line.send(TAKEN)
    except JoinRefusedError:
        line.send(REFUSED)


def test_of_processes_that_use_a_token_at_once_one_wins(shared: Site, tmp_path: Path) -> None:
    token = issue(shared)
    place = shared.ledger.server_url if shared.ledger.is_shared else str(shared.ledger.file)
    racers = [Forked(race, place, tmp_path / str(number), token) for number in range(3)]
    assert [racer.hear() for racer in racers] == ["ready"] * 3
    for racer in racers:
        racer.say()
    assert sorted(racer.hear() for racer in racers) == [REFUSED, REFUSED, TAKEN]
    assert [racer.end() for racer in racers] == [0, 0, 0]
    assert kinds(shared) == ["join.issued", "join.used", "join.refused", "fault"]


def test_a_token_that_is_shown_for_another_node_concerns_its_own_alone(site: Site) -> None:
    token, neighbour = issue(site), ASKED._replace(node="n0004")
    own, later = issue(site, neighbour), issue(site, ASKED._replace(attempt="a2"))
    for attempt in ("a1", "invented"):
        with pytest.raises(JoinRefusedError, match="n0004 may not join: it is the token of n0003"):
            use_token(site.desk, neighbour._replace(attempt=attempt), token, "192.0.2.7")
    assert kinds(site, "n0004") == ["join.issued"], "nobody proved to be n0004"
    assert kinds(site) == ["join.issued", "join.issued", "join.refused", "fault", "join.revoked"]
    (fault,) = (entry for entry in site.ledger.entries(ASKED.node) if entry.kind == "fault")
    assert "was shown by 192.0.2.7 and not taken: it is the token of n0003" in fault.body["detail"]
    with pytest.raises(JoinRefusedError, match="it was revoked"):
        use_token(site.desk, ASKED, token)
    use_token(site.desk, neighbour, own)
    use_token(site.desk, ASKED._replace(attempt="a2"), later)


def test_an_attempt_with_a_replay_gets_no_more_tokens_and_the_next_one_does(site: Site) -> None:
    token, neighbour = issue(site), ASKED._replace(node="n0004", attempt="b1")
    with pytest.raises(JoinRefusedError, match="token of n0003"):
        use_token(site.desk, neighbour, token)
    with pytest.raises(JoinRefusedError, match="revoked or replayed"):
        issue(site, ASKED._replace(purpose="slurm"))
    issue(site, neighbour._replace(purpose="slurm"))
    issue(site, ASKED._replace(attempt="a2"))


@pytest.mark.parametrize("state", ["production", "test", "initializing", "production-reboot"])
def test_a_replayed_token_moves_no_node_and_asks_people(site: Site, state: str) -> None:
    token = issue(site)
    use_token(site.desk, ASKED, token)
    with pytest.raises(JoinRefusedError, match="used before"):
        use_token(site.desk, ASKED, token)
    fault = next(entry for entry in site.ledger.entries(ASKED.node) if entry.kind == "fault")
    assert fault.body["class"] == REPLAY_FAULT
    treatment = site.desk.fleet.fault_catalog.find_treatment(REPLAY_FAULT)
    rule = site.desk.policy.find_fault_rule(state, REPLAY_FAULT, treatment.severity, treatment.blame, False)[1]
    assert (rule.timing, rule.remedy) == ("record", "ticket")


def test_the_same_replay_is_recorded_once_a_day(site: Site) -> None:
    token = issue(site)
    use_token(site.desk, ASKED, token)
    for _ in range(3):
        with pytest.raises(JoinRefusedError):
            use_token(site.desk, ASKED, token)
    assert kinds(site).count("fault") == kinds(site).count("join.refused") == 1
    site.later(days=1)
    with pytest.raises(JoinRefusedError):
        use_token(site.desk, ASKED, token)
    assert kinds(site).count("fault") == 2


def test_invented_tokens_fill_no_ledger(site: Site) -> None:
    for number in range(5):
        with pytest.raises(JoinRefusedError, match="no token of this fleet"):
            use_token(site.desk, ASKED, f"guess {number}")
    assert kinds(site) == ["join.refused"]


def test_a_token_is_given_out_once_and_in_time(site: Site) -> None:
    issue(site)
    with pytest.raises(JoinRefusedError, match="given out before"):
        issue(site)
    with pytest.raises(JoinRefusedError, match="time of this attempt is over"):
        issue(site, ASKED._replace(attempt="a2"), minutes=0)


def test_no_entry_has_a_token(site: Site) -> None:
    token = issue(site)
    use_token(site.desk, ASKED, token)
    with pytest.raises(JoinRefusedError) as refused:
        use_token(site.desk, ASKED, token)
    everything = json.dumps([entry.body for entry in site.ledger.entries()])
    assert token not in everything + str(refused.value)
    assert hash_token(token) in everything
