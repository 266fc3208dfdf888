"""Host ranges mean what they mean to Ansible."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.declare.inventory_reader import MAX_HOSTS, expand_host_pattern

NUMBER = st.integers(0, 30).map(str) | st.integers(0, 30).map("{:03}".format) | st.sampled_from(["a", "e", "Z", ""])
RANGE = st.tuples(NUMBER, NUMBER, st.sampled_from(["", ":1", ":2", ":7"])).map(lambda r: f"[{r[0]}:{r[1]}{r[2]}]")
PATTERN = st.lists(st.sampled_from(["n", "-", "rack", "x1"]) | RANGE, min_size=1, max_size=4).map("".join)


@given(PATTERN)
def test_a_pattern_stands_for_the_hosts_that_ansible_makes_of_it(pattern: str) -> None:
    from ansible.plugins.inventory import detect_range, expand_hostname_range

    try:
        theirs = expand_hostname_range(pattern) if detect_range(pattern) else [pattern]
    except Exception:  # Ansible's own refusals are of several kinds
        assume(False)
        return
    assume(theirs)
    assert expand_host_pattern(pattern)[0] == theirs


@pytest.mark.parametrize(
    ("pattern", "names", "port"),
    [
        ("n[0001:0003]", ["n0001", "n0002", "n0003"], None),
        ("r[a:c]", ["ra", "rb", "rc"], None),
        ("n[1:6:2]", ["n1", "n3", "n5"], None),
        ("r[1:2]n[1:2]", ["r1n1", "r1n2", "r2n1", "r2n2"], None),
        ("n[1:2]:2222", ["n1", "n2"], 2222),
        ("n1:22", ["n1"], 22),
    ],
)
def test_ranges_steps_letters_and_ports_are_understood(pattern: str, names: list[str], port: int | None) -> None:
    assert expand_host_pattern(pattern) == (names, port)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("n[01:003]", "ends of the same length"),
        ("n[5:2]", "ends before it begins"),
        ("n[c:a]", "ends before it begins"),
        ("n[1:a]", "two numbers, or two letters"),
        ("n[²:5]", "no range"),
        ("n[1:5:0]", "step of a range cannot be 0"),
        ("n[1-5]", "no range"),
        ("n[1:2", "no range"),
        ("n[1:9999999999999999]", "two numbers"),
        ("n[0:999999999999]", f"more than {MAX_HOSTS} hosts"),
        ("n[1:99999][1:99999]", f"more than {MAX_HOSTS} hosts"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused_at_once(pattern: str, says: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError, match=says):
        expand_host_pattern(pattern)
    assert time.process_time() - begun < 0.5
