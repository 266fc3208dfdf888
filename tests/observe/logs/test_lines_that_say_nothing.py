"""Of dmesg's lines that differ in their digits alone, one is judged for all, where no digit can make a fault of one."""

from __future__ import annotations

import pytest
import yaml

from assay.cli.workspace import load_surrounding_catalog
from assay.model.specs.log_patterns import KernelLogMatcher
from tests.support.places import ROOT

NOTHING = ("nfs: server n12 OK", "nvme nvme3: 8/0/0 default/read/poll queues")
SOMETHING = (
    "nfs: server n12 not responding, still trying",
    "nfs: server n12 not resp",
    "nvme nvme3: I/O 5 QID 7 timeout, aborting",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
    "Xid 79 was seen",
    "mlx5_core 0000:3b:00.0: poll_health:812:(pid 0): after which any words may stand",
    "usb 1-1: new device",
)


@pytest.fixture(scope="module")
def matcher() -> KernelLogMatcher:
    return load_surrounding_catalog(ROOT).kernel_log_matcher


@pytest.mark.parametrize("text", NOTHING)
def test_what_no_digit_makes_a_fault_says_nothing(matcher, text):
    assert matcher.says_nothing(text)


@pytest.mark.parametrize("text", SOMETHING)
def test_faults_their_beginnings_and_what_is_of_no_driver_are_read(matcher, text):
    assert not matcher.says_nothing(text)


def test_no_line_of_a_fault_says_nothing_with_other_digits(matcher):
    lines = yaml.safe_load((ROOT / "tests/data/one_line_each.yaml").read_text())
    texts = [text for text in _list_texts(lines) if matcher.find_faults(text)]
    assert len(texts) > 40
    for step in range(1, 10):
        turned = str.maketrans("0123456789", "".join(str((digit + step) % 10) for digit in range(10)))
        assert not [text for text in texts if matcher.says_nothing(text.translate(turned))]


def test_a_fault_among_lines_that_say_nothing_counts(tell):
    texts = [NOTHING[at % 2].replace("2" if at % 2 == 0 else "3", str(at % 10)) for at in range(3000)]
    texts[2900] = SOMETHING[0]
    told = tell(*(f"[{100 + at / 1000:12.6f}] {text}" for at, text in enumerate(texts)))
    assert (told["lines"], told["unread"], [fault["lines"] for fault in told["faults"]]) == (3000, 0, [1])


def _list_texts(value):
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _list_texts(part)]
