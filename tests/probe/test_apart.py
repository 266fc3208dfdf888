"""An area that hangs, dies or breaks takes nothing else along, and the whole is on time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.probe.apart import gather


def fine() -> dict[str, Any]:
    return {"answer": {"value": 42}}


def hang() -> dict[str, Any]:
    time.sleep(60)
    return {}


def hang_uninterruptibly() -> dict[str, Any]:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    return hang()


def crash() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def leave_early() -> dict[str, Any]:
    os._exit(3)


def break_down() -> dict[str, Any]:
    raise ZeroDivisionError("oh")


def test_areas_come_back_in_the_order_asked_whatever_their_speed() -> None:
    tree = gather({"slow": (lambda: time.sleep(0.1) or fine(), 5.0), "quick": (fine, 5.0)})
    assert list(tree) == ["slow", "quick"]
    assert tree["slow"] == tree["quick"] == fine()


def test_one_that_hangs_is_given_up_on_time_and_the_others_answer() -> None:
    begun = time.monotonic()
    tree = gather({"a": (hang, 0.3), "b": (fine, 5.0), "c": (hang_uninterruptibly, 0.5)})
    assert time.monotonic() - begun < 4
    assert tree == {"a": {"failed": "no answer within 0.3 s"}, "b": fine(), "c": {"failed": "no answer within 0.5 s"}}


def test_one_that_crashes_is_named_by_its_signal() -> None:
    tree = gather({"a": (crash, 5.0), "b": (leave_early, 5.0), "c": (fine, 5.0)})
    assert tree["a"] == {"failed": "the reader died (SIGKILL)"}
    assert tree["b"] == {"failed": "the reader died (exit 3)"}
    assert tree["c"] == fine()


def test_one_that_raises_says_what() -> None:
    assert gather({"a": (break_down, 5.0)}) == {"a": {"failed": "ZeroDivisionError: oh"}}


def test_an_answer_larger_than_a_pipe_arrives_whole() -> None:
    big = {"lines": {"value": ["x" * 1000] * 1000}}
    assert gather({"a": (lambda: big, 5.0)}) == {"a": big}


def test_a_child_holds_none_of_our_standard_files() -> None:
    def where() -> dict[str, Any]:
        return {"value": [str(Path(f"/proc/self/fd/{number}").readlink()) for number in (0, 1, 2)]}

    assert gather({"a": (where, 5.0)}) == {"a": {"value": ["/dev/null"] * 3}}


def test_a_child_left_by_a_killed_probe_ends_by_its_own_alarm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = f"""
import os
from assay.probe.apart import gather
def hang():
    with open("{tmp_path}/pid", "w") as file:
        file.write(str(os.getpid()))
    open("{tmp_path}/pipe")
gather({{"a": (hang, 0.9)}})
"""
    probe = subprocess.Popen([sys.executable, "-c", script])
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    child = int((tmp_path / "pid").read_text())
    probe.kill()
    probe.wait()
    assert alive(child)
    until(lambda: not alive(child))


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def until(true: Callable[[], bool], limit_s: float = 8.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
