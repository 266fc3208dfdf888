"""What waits is kept whole, in order and within its bound; what does not fit is counted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.node.agent.delivery import BufferItem, DeliveryBuffer
from assay.node.probe.kernel_log import RecordPriority

ROOMY = 10**9


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "buffer.sqlite"


def line(text: str, priority: RecordPriority = RecordPriority.KNOWN) -> BufferItem:
    return BufferItem("probe" if priority == RecordPriority.ROUTINE else "kernel", 1.0, priority, {"text": text})


def texts(buffer: DeliveryBuffer) -> list[str]:
    return [one.body for one in buffer.next_batch(10**6, 10**9)]


def test_items_come_back_in_order_with_rising_numbers(path):
    buffer = DeliveryBuffer(path, ROOMY)
    buffer.add([line("a"), line("b")])
    buffer.add([line("c")])
    assert [(one.seq, one.body) for one in buffer.next_batch(10, ROOMY)] == [
        (1, '{"text":"a"}'),
        (2, '{"text":"b"}'),
        (3, '{"text":"c"}'),
    ]


def test_what_was_delivered_is_gone_and_its_number_is_never_used_again(path):
    buffer = DeliveryBuffer(path, ROOMY)
    buffer.add([line("a"), line("b")])
    buffer.mark_delivered(2)
    buffer.add([line("c")])
    assert [one.seq for one in buffer.next_batch(10, ROOMY)] == [3]
    buffer.mark_delivered(3)
    buffer.close()
    again = DeliveryBuffer(path, ROOMY)
    again.add([line("d")])
    assert [one.seq for one in again.next_batch(10, ROOMY)] == [4]


def test_everything_is_there_again_after_a_restart(path):
    first = DeliveryBuffer(path, ROOMY)
    first.add([line("a")], cursor="7@boot")
    first.mark_delivered(1)
    first.add([line("b")])
    first.close()
    again = DeliveryBuffer(path, ROOMY)
    assert (again.buffer_id, again.acked, again.count, again.bytes) == (first.buffer_id, 1, 1, first.bytes)
    assert again.read_fact("cursor") == "7@boot"


def test_a_batch_is_bounded_in_items_and_bytes_but_never_empty(path):
    buffer = DeliveryBuffer(path, ROOMY)
    buffer.add([line("x" * 1000) for _ in range(10)])
    assert len(buffer.next_batch(3, ROOMY)) == 3
    assert len(buffer.next_batch(10, 2500)) == 2
    assert len(buffer.next_batch(10, 1)) == 1


def test_readings_make_room_first_then_warnings_the_oldest_first(path):
    buffer = DeliveryBuffer(path, 900)
    buffer.add([line("readings " + "r" * 150, RecordPriority.ROUTINE)])
    buffer.add([line(f"warns {number} " + "w" * 100, RecordPriority.WARNING) for number in range(3)])
    buffer.add([line("tells " + "t" * 100)])
    assert buffer.dropped == {"readings": 1}
    buffer.add([line("tells too " + "t" * 100)])
    assert buffer.dropped == {"readings": 1, "warnings": 1}
    assert [text[9:16] for text in texts(buffer)] == ["warns 1", "warns 2", "tells t", "tells t"]


def test_of_lines_that_tell_of_known_things_the_first_are_kept(path):
    buffer = DeliveryBuffer(path, 500)
    buffer.add([line("the cause" + "x" * 80)])
    buffer.add([line(f"an echo {number}" + "x" * 80) for number in range(20)])
    assert "the cause" in texts(buffer)[0]
    assert buffer.dropped == {"known": 18}


def test_what_is_being_sent_is_not_dropped_meanwhile(path):
    buffer = DeliveryBuffer(path, 500)
    buffer.add([line("w" * 100, RecordPriority.WARNING)])
    (sent,) = buffer.next_batch(1, ROOMY)
    buffer.add([line("t" * 100) for _ in range(5)])
    assert [one.seq for one in buffer.next_batch(1, ROOMY)] == [sent.seq]


def test_a_damaged_file_is_set_aside_and_a_new_life_begins(path):
    life = DeliveryBuffer(path, ROOMY).buffer_id
    path.with_name(path.name + "-wal").unlink(missing_ok=True)
    path.write_bytes(b"no database at all" * 100)
    again = DeliveryBuffer(path, ROOMY)
    again.add([line("a")])
    assert again.buffer_id != life
    assert path.with_name("buffer.sqlite.damaged").exists()


def test_a_transaction_that_fails_changes_nothing(path):
    buffer = DeliveryBuffer(path, ROOMY)
    buffer.add([line("a")], cursor="1@b")
    with pytest.raises(TypeError):
        buffer.add([line("b"), BufferItem("kernel", 1.0, RecordPriority.KNOWN, {"text": object()})], cursor="2@b")
    assert (buffer.count, buffer.read_fact("cursor"), len(texts(buffer))) == (1, "1@b", 1)


PRIORITIES = st.sampled_from(RecordPriority)


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(PRIORITIES, st.integers(0, 400)), max_size=6), max_size=12), st.integers(0, 30))
def test_the_bound_holds_and_nothing_vanishes_uncounted(tmp_path_factory, steps, deliver):
    buffer = DeliveryBuffer(tmp_path_factory.mktemp("b") / "buffer.sqlite", 1500)
    added = 0
    for number, step in enumerate(steps):
        buffer.add([line("x" * size, priority) for priority, size in step])
        added += len(step)
        if number == deliver:
            buffer.mark_delivered(max([one.seq for one in buffer.next_batch(5, ROOMY)], default=0))
    gone = sum(buffer.dropped.values())
    assert buffer.bytes <= 1500
    assert buffer.count == len(texts(buffer))
    assert buffer.count + gone <= added
    if deliver >= len(steps):
        assert buffer.count + gone == added
    buffer.close()
