"""An area that hangs, dies or breaks takes nothing else along, and the whole is on time."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.model.reading import absent, failed, value
from assay.node.probe import isolated_reader
from assay.node.probe.isolated_reader import gather_isolated
from assay.node.probe.node_access import TimedQuestion, resolve_lazy


def fine() -> dict[str, Any]:
    return {"answer": {"value": 42}}


HUNG_S = 60  # what hangs hangs for so long; who does not wait for it is through long before


def hang() -> dict[str, Any]:
    time.sleep(HUNG_S)
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
    tree = gather_isolated({"slow": lambda: time.sleep(0.1) or fine(), "quick": fine}, 8)
    assert list(tree) == ["slow", "quick"]
    assert tree["slow"] == tree["quick"] == fine()


def test_a_plain_area_that_hangs_is_given_up_on_time_and_the_others_answer() -> None:
    begun = time.monotonic()
    tree = gather_isolated(
        {"a": TimedQuestion(0.3, hang), "b": fine, "c": TimedQuestion(0.5, hang_uninterruptibly)}, 20
    )
    assert time.monotonic() - begun < HUNG_S / 2
    assert tree["a"]["failed"].startswith("no answer within 0.3 s (state S")
    assert tree["c"]["failed"].startswith("no answer within 0.5 s (state S")
    assert tree["b"] == fine()


def test_areas_that_share_a_process_part_when_one_is_lost() -> None:
    def where() -> dict[str, Any]:
        return {"process": lambda: value(os.getpid()), "z": fine}

    def lost() -> dict[str, Any]:
        return {"a": fine, "hung": TimedQuestion(0.3, hang), "dead": crash, "z": fine}

    areas = {"first": where, "second": where, "lost": lost, "last": where, "known": absent("no"), "apart": where}
    tree = gather_isolated(areas, 20, together=("first", "second", "lost", "last"))
    process = {name: tree[name]["process"]["value"] for name in ("first", "second", "last", "apart")}
    assert process["first"] == process["second"]
    assert len(set(process.values())) == 3
    assert tree["lost"]["hung"]["failed"].startswith("no answer within 0.3 s (state S")
    assert tree["lost"]["dead"] == {"failed": "the reader died (SIGKILL)"}
    assert tree["lost"]["a"] == tree["lost"]["z"] == tree["last"]["z"] == fine()
    assert list(tree) == list(areas)
    assert tree["known"] == absent("no")


def test_an_area_that_is_given_up_leaves_those_that_shared_its_process() -> None:
    hangs = {name: TimedQuestion(0.2, hang) for name in "abcd"}
    tree = gather_isolated({"hung": lambda: hangs, "well": fine}, 20, together=("hung", "well"))
    assert [tree["hung"][name]["failed"][:9] for name in "abcd"] == ["no answer"] * 3 + ["not asked"]
    assert tree["well"] == fine()


def test_one_that_crashes_is_named_by_its_signal() -> None:
    tree = gather_isolated({"a": crash, "b": leave_early, "c": fine}, 8)
    assert tree["a"] == {"failed": "the reader died (SIGKILL)"}
    assert tree["b"] == {"failed": "the reader died (exit 3)"}
    assert tree["c"] == fine()


def test_one_that_raises_says_what() -> None:
    assert gather_isolated({"a": break_down}, 8) == {"a": {"failed": "ZeroDivisionError: oh"}}


def test_a_question_that_dies_takes_only_itself_along() -> None:
    tree = gather_isolated({"a": lambda: {"x": fine, "y": crash, "z": fine}}, 8)
    assert tree == {"a": {"x": fine(), "y": {"failed": "the reader died (SIGKILL)"}, "z": fine()}}


def test_a_file_that_nobody_writes_costs_its_own_reading_and_says_where_it_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    area = {"a": fine, "fifo": TimedQuestion(0.3, lambda: value((tmp_path / "fifo").read_text())), "z": fine}
    tree = gather_isolated({"area": lambda: area}, 8)
    assert list(tree["area"]) == ["a", "fifo", "z"]
    assert tree["area"]["a"] == tree["area"]["z"] == fine()
    assert tree["area"]["fifo"]["failed"].startswith("no answer within 0.3 s (state S")


def test_a_stopped_reader_is_told_by_its_state() -> None:
    tree = gather_isolated(
        {"a": lambda: {"stopped": TimedQuestion(0.3, lambda: os.kill(os.getpid(), signal.SIGSTOP)), "z": fine}}, 8
    )
    assert tree["a"]["stopped"]["failed"].startswith("no answer within 0.3 s (state T")
    assert tree["a"]["z"] == fine()


def test_a_loop_without_end_is_told_by_its_state() -> None:
    def spin() -> None:
        while True:
            pass

    tree = gather_isolated({"a": lambda: {"loop": TimedQuestion(0.3, spin), "z": fine}}, 8)
    assert re.match(r"no answer within 0.3 s \(state [RS]", tree["a"]["loop"]["failed"])
    assert tree["a"]["z"] == fine()


def test_a_reader_that_gets_little_cpu_is_no_reader_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others want the only CPU that it may run on: it is late, and it answers."""
    monkeypatch.setattr(isolated_reader, "STARVED_GRACE_S", 50)  # how many others there are, nobody knows
    cpu = min(os.sched_getaffinity(0))

    def works() -> dict[str, Any]:
        os.sched_setaffinity(0, {cpu})
        begun = time.process_time()
        while time.process_time() - begun < 0.15:
            pass
        return value("late")

    spin = [sys.executable, "-S", "-c", SPIN.format(cpu=cpu)]
    busy = [subprocess.Popen(spin, stdout=subprocess.PIPE) for _ in range(4)]
    try:
        assert [one.stdout and one.stdout.readline() for one in busy] == [b"spins\n"] * 4
        assert gather_isolated({"a": lambda: {"starved": TimedQuestion(0.1, works)}}, 60)["a"]["starved"] == value(
            "late"
        )
    finally:
        for one in busy:
            one.kill()
            one.communicate()


SPIN = "import os\nos.sched_setaffinity(0, {{{cpu}}})\nprint('spins', flush=True)\nwhile True: pass"


@pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler here (Debian: gcc)")
def test_a_reader_in_uninterruptible_sleep_is_told_by_its_state(tmp_path: Path) -> None:
    source = (
        "#include <unistd.h>\nint stuck(void) { if (!vfork()) for (;;) pause(); return 0; }"  # the parent sleeps in D
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", tmp_path / "stuck.so"], input=source.encode(), check=True
    )
    stuck = ctypes.CDLL(str(tmp_path / "stuck.so")).stuck
    tree = gather_isolated({"a": lambda: {"stuck": TimedQuestion(0.3, stuck), "z": fine}}, 8)
    assert tree["a"]["stuck"]["failed"].startswith("no answer within 0.3 s (state D")
    assert tree["a"]["z"] == fine()


def test_a_tool_that_hangs_is_named_and_does_not_outlive_its_question(tmp_path: Path) -> None:
    def tool() -> dict[str, Any]:
        with subprocess.Popen(["sleep", "60"]) as process:
            (tmp_path / "pid").write_text(str(process.pid))
        return {}

    tree = gather_isolated({"a": lambda: {"tool": TimedQuestion(0.5, tool)}}, 8)
    assert tree["a"]["tool"]["failed"].startswith("no answer within 0.5 s (sleep in state S")
    until(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_hangs_deep_below_branches_that_were_asked_for_cost_only_themselves(tmp_path: Path) -> None:
    def device() -> dict[str, Any]:
        with (tmp_path / "asked").open("a") as file:
            file.write("x")
        return {"serial": lambda: value("7"), "hung": TimedQuestion(0.2, hang), "temperature": lambda: value(40)}

    tree = gather_isolated({"gpu": lambda: {"devices": lambda: {"0": device, "1": device}}}, 8)
    for number in "01":
        found = tree["gpu"]["devices"][number]
        assert (found["serial"], found["temperature"]) == (value("7"), value(40))
        assert found["hung"]["failed"].startswith("no answer within 0.2 s")
    assert (tmp_path / "asked").read_text() == "x" * 4  # once more after each hang, and never where all is known


def test_no_question_that_was_answered_is_asked_twice(tmp_path: Path) -> None:
    def once(name: str) -> dict[str, Any]:
        with (tmp_path / name).open("x"):
            return value(name)

    names = [f"n{number}" for number in range(50)]
    area = {"before": {name: partial(once, name) for name in names}, "hung": TimedQuestion(0.2, hang), "after": fine}
    tree = gather_isolated({"a": lambda: area}, 8)
    assert tree["a"]["before"] == {name: value(name) for name in names}
    assert tree["a"]["after"] == fine()


def test_an_area_where_much_hangs_is_given_up_with_the_reason_at_all_that_was_not_asked() -> None:
    begun = time.monotonic()
    area = {"first": fine, **{f"n{number}": TimedQuestion(0.2, hang) for number in range(40)}, "last": {"deep": fine}}
    tree = gather_isolated({"a": lambda: area, "b": fine}, 30)["a"]
    assert time.monotonic() - begun < HUNG_S / 2
    assert tree["first"] == fine()
    assert [tree[f"n{number}"]["failed"].startswith("no answer") for number in range(4)] == [True, True, True, False]
    not_asked = {"failed": "not asked: 3 readings of this area hung or killed their reader"}
    assert tree["n39"] == tree["last"] == not_asked


def test_the_whole_is_on_time_and_says_what_it_did_not_come_to() -> None:
    begun = time.monotonic()
    area = {"first": fine, "slow": TimedQuestion(50, hang), "last": fine}
    for seconds in (0.5, 5.0):
        tree = gather_isolated({"a": lambda: area, "b": fine}, seconds)
        if "first" in tree["a"] and tree["b"] == fine():  # else the machine is too busy to come so far
            break
    assert time.monotonic() - begun < HUNG_S / 2
    assert tree["b"] == tree["a"]["first"] == fine()
    assert tree["a"]["slow"]["failed"].startswith("no answer before the probe's time was over (state S")
    assert tree["a"]["last"] == {"failed": f"not asked: the probe's {seconds} s were over"}


def test_a_branch_that_answers_otherwise_the_second_time_is_the_answer_of_what_is_left(tmp_path: Path) -> None:
    def device() -> dict[str, Any]:
        if (tmp_path / "lost").exists():
            return failed("GPU is lost")
        (tmp_path / "lost").touch()
        return {"serial": lambda: value("7"), "hung": TimedQuestion(0.2, hang), "temperature": fine}

    found = gather_isolated({"a": lambda: {"0": device}}, 8)["a"]["0"]
    assert found["serial"] == value("7")
    assert found["temperature"] == failed("GPU is lost")


def test_an_answer_larger_than_a_pipe_arrives_whole() -> None:
    big = {"lines": {"value": ["x" * 1000] * 1000}}
    assert gather_isolated({"a": lambda: big}, 8) == {"a": big}


def test_floods_are_cut_off_and_the_rest_stays() -> None:
    flood = {"one": lambda: value("x" * 9 * 2**20), "z": fine}
    many = {str(number): lambda: value("x" * 2**20) for number in range(12)}
    tree = gather_isolated({"a": lambda: flood, "many": lambda: many}, 20)
    assert tree["a"] == {"one": failed("more than this area's 8 MiB of answers"), "z": fine()}
    assert ["value" in tree["many"][name] for name in many] == [True] * 7 + [False] * 5


@pytest.mark.parametrize("answer", [b"bytes", float("nan"), "\ud800", {1, 2}])
def test_what_json_cannot_hold_fails_alone(answer: Any) -> None:
    tree = gather_isolated({"a": lambda: {"odd": lambda: value(answer), "z": fine}}, 8)["a"]
    assert tree["odd"]["failed"].startswith("no JSON: ")
    assert tree["z"] == fine()


@pytest.mark.parametrize("answer", [None, 7, [], "text"])
def test_what_is_no_reading_fails(answer: Any) -> None:
    (found,) = gather_isolated({"a": lambda: {"odd": lambda: answer}}, 8)["a"]["odd"].values()
    assert found == f"the reader answered with {type(answer).__name__}, which is no reading"


def test_a_tree_that_holds_itself_ends() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    assert gather_isolated({"a": lambda: endless, "b": fine}, 8)["b"] == fine()


def test_a_reader_that_lets_go_of_its_pipe_and_stays_is_not_waited_for() -> None:
    begun = time.monotonic()
    tree = gather_isolated({"a": lambda: os.closerange(3, 256) or hang(), "b": fine}, 20)
    assert time.monotonic() - begun < HUNG_S / 2
    assert "failed" in tree["a"]
    assert tree["b"] == fine()


def test_a_reading_costs_far_less_than_a_process_of_its_own() -> None:
    many, processes = 4000, 10
    area = {str(number): partial(value, number) for number in range(many)}
    before = cpu_s()
    tree = gather_isolated({"a": lambda: area}, 60)
    readings = cpu_s() - before
    assert tree["a"][str(many - 1)] == value(many - 1)
    for _ in range(processes):
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)
    forks = cpu_s() - before - readings
    assert readings / many < forks / processes / 2, "30 µs and 3 ms where this was written"


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


lazy = st.recursive(
    st.one_of(st.integers().map(value), st.text().map(failed)),
    lambda below: st.one_of(st.dictionaries(st.text(max_size=3), below, max_size=4), below.map(lambda it: lambda: it)),
    max_leaves=12,
)


@given(lazy)
@settings(max_examples=15)
def test_what_is_gathered_is_what_the_same_tree_reads_in_one_process(tree: Any) -> None:
    assert gather_isolated({"a": lambda: tree}, 30) == {"a": resolve_lazy(tree)}


def test_a_child_holds_none_of_our_standard_files() -> None:
    def where() -> dict[str, Any]:
        return {"value": [str(Path(f"/proc/self/fd/{number}").readlink()) for number in (0, 1, 2)]}

    assert gather_isolated({"a": where}, 8) == {"a": {"value": ["/dev/null"] * 3}}


def test_a_child_left_by_a_killed_probe_ends_by_its_own_alarm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = f"""
import os
from assay.node.probe.isolated_reader import gather_isolated
from assay.node.probe.node_access import TimedQuestion
def hang():
    with open("{tmp_path}/pid", "w") as file:
        file.write(str(os.getpid()))
    open("{tmp_path}/pipe")
gather_isolated({{"a": TimedQuestion(50, hang)}}, 0.9)
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


def until(true: Callable[[], bool], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
