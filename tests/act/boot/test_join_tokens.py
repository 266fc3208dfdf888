"""One-time tokens on paper: which are taken, which are refused, and what is an alarm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.act.boot.joins import (
    JoinRequest,
    find_refusal,
    hash_token,
    make_issued_entry,
    make_revoked_entry,
    make_used_entry,
    read_tokens,
)
from assay.model.ledger_entry import LedgerEntry

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
END = NOW + timedelta(minutes=15)
ASKED = JoinRequest("n1", "a1", "kubernetes")
DIGEST = hash_token("secret")
ISSUED = make_issued_entry(ASKED, DIGEST, END, "tpm", NOW)
TOKEN = read_tokens([ISSUED])[DIGEST]


def refuse(*ended: LedgerEntry, asked: JoinRequest = ASKED, now: datetime = NOW) -> tuple[str, bool]:
    refusal = find_refusal(read_tokens([ISSUED, *ended]).get(DIGEST), asked, now)
    return tuple(refusal) if refusal else ("", False)


def test_a_token_is_taken_once() -> None:
    assert refuse() == ("", False)
    assert refuse(make_used_entry(ASKED, DIGEST, NOW)) == ("it was used before", True)


def test_a_neighbour_with_the_token_is_an_alarm() -> None:
    assert refuse(asked=ASKED._replace(node="n2")) == ("it is the token of n1, and was shown for n2", True)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (ASKED._replace(attempt="a2"), "it is for another start of the node"),
        (ASKED._replace(purpose="slurm"), "it is for kubernetes"),
    ],
)
def test_a_token_is_good_for_one_attempt_and_purpose(asked: JoinRequest, why: str) -> None:
    assert refuse(asked=asked) == (why, False)


def test_a_token_ends() -> None:
    assert refuse(now=END - timedelta(seconds=1)) == ("", False)
    assert refuse(now=END) == ("it was good until 2026-11-23 12:15:00 UTC", False)
    assert refuse(make_revoked_entry(DIGEST, TOKEN, "bob", NOW)) == ("it was revoked", False)


def test_a_used_token_stays_an_alarm_when_its_time_is_over() -> None:
    assert refuse(make_used_entry(ASKED, DIGEST, NOW), now=END + timedelta(days=1))[1]


def test_an_invented_token_is_none() -> None:
    refusal = find_refusal(None, ASKED, NOW)
    assert refusal is not None
    assert not refusal.is_replay


def test_a_use_and_a_revocation_exclude_each_other() -> None:
    assert make_used_entry(ASKED, DIGEST, NOW).id == make_revoked_entry(DIGEST, TOKEN, "bob", NOW).id


REQUESTS = st.builds(JoinRequest, *(st.sampled_from([f"{name}1", f"{name}2"]) for name in "nap"))
STEPS = st.tuples(st.sampled_from(["issue", "use", "revoke"]), REQUESTS, st.sampled_from("xyz"), st.integers(0, 9))


@settings(deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_no_order_of_deeds_takes_a_token_twice_or_for_another(steps: list[tuple[str, JoinRequest, str, int]]) -> None:
    entries: dict[str, LedgerEntry] = {}
    owners: dict[str, JoinRequest] = {}
    taken: list[str] = []
    now = NOW
    for deed, asked, token, minutes in steps:
        now += timedelta(minutes=minutes)
        known = read_tokens(entries.values())
        if deed == "issue" and token not in owners:
            entry = make_issued_entry(asked, token, now + timedelta(minutes=10), "tpm", now)
            if entries.setdefault(entry.id, entry) is entry:
                owners[token] = asked
        elif deed == "revoke" and token in known:
            entry = make_revoked_entry(token, known[token], "x", now)
            entries.setdefault(entry.id, entry)
        elif deed == "use" and find_refusal(known.get(token), asked, now) is None:
            assert owners[token] == asked
            entry = make_used_entry(asked, token, now)
            assert entries.setdefault(entry.id, entry) is entry
            taken.append(token)
    assert len(taken) == len(set(taken))
