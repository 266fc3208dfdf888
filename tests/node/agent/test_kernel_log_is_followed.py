"""A followed kernel log gives each record once, in order, whatever happens to the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.node.agent.sources import KernelLogFollower
from assay.node.probe.kernel_log import KernelLogCursor, KernelLogFilter, parse_level
from assay.node.probe.node_access import NodeRoot

BOOT = "6f1c1f6e-0000-4000-8000-000000000001"


class Node:
    """A node's root with a kernel log that can be written."""

    def __init__(self, home: Path) -> None:
        self.log, self.boot = home / "dev/kmsg", home / "proc/sys/kernel/random/boot_id"
        for path in (self.log, self.boot):
            path.parent.mkdir(parents=True)
        self.boot.write_text(f"{BOOT}\n")
        self.log.write_text("")
        self.root = NodeRoot(str(home))

    def add(self, *numbers: int) -> None:
        with self.log.open("a") as file:
            file.write("".join(record(number) for number in numbers))

    def anew(self, *numbers: int) -> None:
        """Replace the log by rename, as a rotation does."""
        fresh = self.log.with_name("new")
        fresh.write_text("".join(record(number) for number in numbers))
        fresh.replace(self.log)

    def follow(self, since: str = "-1") -> KernelLogFollower:
        return KernelLogFollower(self.root, KernelLogCursor.parse(since))


def record(number: int) -> str:
    return f"4,{number},{number * 1000},-;line {number}\n DEVICE=+pci:0000\n"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def numbers(follower: KernelLogFollower) -> list[int]:
    return [one.seq for one in follower.read_new(0.0)]


def test_lines_come_once_and_in_order(node):
    node.add(0, 1)
    follower = node.follow()
    assert numbers(follower) == [0, 1]
    node.add(2)
    assert numbers(follower) == [2]
    assert numbers(follower) == []
    assert follower.cursor == f"2@{BOOT}"


def test_a_line_that_is_half_written_is_waited_for(node):
    follower = node.follow()
    node.log.write_text("4,0,10,-;li")
    assert numbers(follower) == []
    with node.log.open("a") as file:
        file.write("ne\n")
    assert numbers(follower) == [0]


def test_a_cursor_of_this_boot_skips_what_was_seen(node):
    node.add(0, 1, 2)
    assert numbers(node.follow(f"1@{BOOT}")) == [2]


def test_a_cursor_of_another_boot_skips_nothing(node):
    node.add(0, 1, 2)
    assert numbers(node.follow("1@another")) == [0, 1, 2]


def test_a_log_that_was_replaced_goes_on_where_it_was(node):
    node.add(0, 1)
    follower = node.follow()
    numbers(follower)
    node.anew(0, 1, 2)
    assert numbers(follower) == [2]


def test_what_was_added_before_a_rotation_is_not_lost(node):
    follower = node.follow()
    node.add(0, 1)
    node.anew(2, 3)
    assert numbers(follower) + numbers(follower) == [0, 1, 2, 3]


def test_a_log_of_another_boot_is_all_new(node):
    node.add(0, 1, 2)
    follower = node.follow()
    numbers(follower)
    node.boot.write_text("other\n")
    node.anew(0, 1)
    assert numbers(follower) == [0, 1]
    assert follower.cursor == "1@other"


def test_a_log_that_begins_anew_below_the_cursor_is_all_new(node):
    node.add(7, 8)
    follower = node.follow()
    numbers(follower)
    node.anew(0, 1)
    assert numbers(follower) == [0, 1]


def test_a_log_that_is_missing_for_a_moment_is_waited_for(node):
    node.add(0)
    follower = node.follow()
    numbers(follower)
    node.log.unlink()
    assert numbers(follower) == []
    node.add(1)
    assert numbers(follower) == [1]


def test_what_was_overwritten_is_counted(node):
    node.add(0, 1)
    follower = node.follow()
    numbers(follower)
    node.anew(5, 6)
    assert numbers(follower) == [5, 6]
    assert follower.missed == 3


@given(st.binary(max_size=400))
def test_no_bytes_break_the_follower(tmp_path_factory, noise):
    node = Node(tmp_path_factory.mktemp("node"))
    node.log.write_bytes(noise + b"\n4,1,5,-;after\n")
    follower = node.follow()
    seen = follower.read_new(0.0)
    assert [one.seq for one in seen] == sorted({one.seq for one in seen})


def test_this_machines_own_log_can_be_followed():
    try:
        follower = KernelLogFollower(NodeRoot("/"), KernelLogCursor())
    except OSError as error:
        pytest.skip(f"/dev/kmsg cannot be read here: {error.strerror}; run as root, or with CAP_SYSLOG")
    first = follower.read_new(0.0)
    assert [one.seq for one in first] == sorted(one.seq for one in first)


def test_warnings_and_worse_are_sent_whatever_they_say():
    assert KernelLogFilter().rate_record(b"4,1,1,-;usb 1-1: something odd") == 1
    assert KernelLogFilter().rate_record(b"28,1,1,-;a daemon's warning: facility 3, level 4") == 1
    assert KernelLogFilter().rate_record(b"6,1,1,-;usb 1-1: all is well") == 0


def test_a_link_that_goes_down_is_sent_though_it_is_only_information():
    assert KernelLogFilter().rate_record(b"6,1,1,-;mlx5_core 0000:18:00.0 mlx5_0: Port: 1 Link DOWN") == 2


def test_a_word_of_the_controllers_makes_a_line_worth_sending():
    assert KernelLogFilter().rate_record(b"6,1,1,-;acme: widget gone") == 0
    assert KernelLogFilter(["Widget gone"]).rate_record(b"6,1,1,-;acme: widget gone") == 2


def test_an_empty_word_asks_for_every_line():
    assert KernelLogFilter([""]).rate_record(b"7,1,1,-;anything") == 2


@given(st.binary(max_size=60))
def test_a_record_without_a_priority_counts_as_a_warning(noise):
    assert 0 <= parse_level(noise) <= 7
