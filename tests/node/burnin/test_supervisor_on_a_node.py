"""The supervisor carries out a plan on told time, and goes on after kills, reboots and a lost disk."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from assay.model.specs.burn_in import BurnIn
from assay.node.burnin import node_tasks
from assay.node.burnin.command import answer_burn_in
from assay.node.burnin.journal import JOURNAL, STOP, BurnInFolder, Journal, read_since
from assay.node.burnin.node_tasks import MAX_GAP_S, NodeMachine, find_phase
from assay.node.burnin.supervisor import Supervisor, is_swung_low, time_to_edge, time_with_load
from assay.node.load_tools.tool_call import LoadOrder
from assay.node.probe.node_access import NodeRoot
from assay.validate.active.burn_in_windows import make_node_plan

PLAN: dict[str, Any] = {
    "id": "one",
    "watch_s": 30,
    "phases": [
        {"name": "heat", "seconds": 300, "unit_s": 60, "rows": [["gpu_burn", "all_reduce"], ["memory"]]},
        {"name": "cycles", "seconds": 240, "unit_s": 60, "rows": [["gpu_burn"]], "cycles": [60, 30]},
        {"name": "swings", "seconds": 120, "unit_s": 60, "rows": [["gpu_burn"]], "hertz": [0.1], "duty": 0.3},
    ],
}


class ToldTask:
    """A task that takes told time, and knows for how long it was paused."""

    def __init__(self, machine: ToldMachine, seconds: float, result: dict[str, Any]) -> None:
        self.machine, self.ends_at, self.result = machine, machine.time + seconds, result
        self.low_s, self.low_since, self.killed = 0.0, -1.0, False

    def poll(self) -> dict[str, Any] | None:
        return self.result if self.machine.time >= self.ends_at else None

    def pause(self) -> None:
        self.low_since = self.machine.time
        self.machine.turns.append((round(self.machine.wall(), 1), "low"))

    def resume(self) -> None:
        self.low_s += self.machine.time - self.low_since
        self.machine.turns.append((round(self.machine.wall(), 1), "high"))

    def kill(self) -> None:
        self.killed = True


class ToldMachine:
    """A node whose time passes when somebody sleeps. It reboots, or its supervisor is frozen, at a told time."""

    rate, most_gap_s = 1.0, MAX_GAP_S

    def __init__(self, reboots_at: float = 1e9, frozen: tuple[float, float] = (1e9, 0.0)) -> None:
        self.time, self.reboots_at, self.frozen = 1000.0, 1000 + reboots_at, frozen
        self.ahead_s = 0.0
        self.turns: list[tuple[float, str]] = []
        self.units: list[tuple[str, int, ToldTask]] = []
        self.absent: set[str] = set()

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time - 1030 + self.ahead_s

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        if self.time - 1000 >= self.frozen[0]:
            self.time, self.frozen = self.time + self.frozen[1], (1e9, 0.0)

    def boot_id(self) -> str:
        return "boot-2" if self.time >= self.reboots_at else "boot-1"

    def start_unit(self, part: str, seconds: int, t: float) -> ToldTask:
        del t
        missing = part in self.absent
        result = {"absent": f"{part} is not installed"} if missing else {"errors": {"value": 0}}
        task = ToldTask(self, 0.1 if missing else seconds, result)
        self.units.append((part, seconds, task))
        return task

    def start_watch(self) -> ToldTask:
        return ToldTask(self, 2.0, {"gpus": {"gpu0": {"temperature": 61}}, "dimms": {}})

    def identify(self) -> dict[str, Any]:
        return {"serials": {"gpu0": "777"}}


@pytest.fixture
def folder(tmp_path: Path) -> BurnInFolder:
    made = BurnInFolder(NodeRoot(str(tmp_path)))
    made.create()
    made.write_plan(PLAN)
    return made


def run(folder: BurnInFolder, machine: ToldMachine, plan: dict[str, Any] = PLAN) -> list[dict[str, Any]]:
    Supervisor(folder, plan, machine).run()
    lines: list[dict[str, Any]] = read_since(folder, "", 2**30)["lines"]
    return lines


def list_units(lines: list[dict[str, Any]], phase: str = "") -> list[str]:
    return [line["unit"] for line in lines if "unit" in line and phase in ("", line["p"])]


def test_a_whole_plan_runs_its_rows_beside_each_other_and_ends(folder: BurnInFolder) -> None:
    lines = run(folder, ToldMachine())
    assert list_units(lines, "heat").count("memory") == 5, "beside the other row, all the time"
    assert [part for part in list_units(lines, "heat") if part != "memory"][:4] == ["gpu_burn", "all_reduce"] * 2
    assert [line["p"] for line in lines if "begins" in line] == ["heat", "cycles", "swings"]
    assert lines[-1]["end"] == "done"
    assert lines[-1]["t"] == pytest.approx(660, abs=3)
    assert sum("watch" in line for line in lines) >= 20
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))


def test_the_load_rests_in_cycles_and_swings_by_its_duty(folder: BurnInFolder) -> None:
    machine = ToldMachine()
    lines = run(folder, machine)
    loaded = sum(line["s"] for line in lines if line.get("unit") and line["p"] == "cycles")
    assert loaded == pytest.approx(180, abs=8), "60 s on and 30 s off, in 240 s"
    swung = [task for _, _, task in machine.units if task.low_s]
    assert swung
    assert all(task.low_s == pytest.approx(0.7 * 60 - 7, abs=8) for task in swung), "the last low may not end"


def test_a_full_disk_stops_no_test(folder: BurnInFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BurnInFolder, "replace", refuse)
    assert run(folder, ToldMachine())[-1]["end"] == "done"


def test_what_a_full_disk_does_not_take_is_written_when_there_is_room(
    folder: BurnInFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = os.write, [40]

    def write_what_fits(file: int, text: bytes) -> int:
        if left[0] >= len(text):
            return write(file, text)
        if not left[0]:
            raise OSError(28, "No space left on device")
        fits, left[0] = left[0], 0
        return write(file, text[:fits])

    journal = Journal(folder)
    journal.add(1, "heat", watch={"gpus": {}})
    monkeypatch.setattr(os, "write", write_what_fits)
    journal.add(2, "heat", unit="memory", s=60, result={"errors": {"value": 3}})
    journal.add(3, "heat", watch={"gpus": {}})
    assert [line["n"] for line in read_since(folder, "", 2**20)["lines"]] == [1, 2], "no half of a line is left"
    monkeypatch.undo()
    journal.add(4, "heat", watch={"gpus": {}})
    lines = read_since(folder, "", 2**20)["lines"]
    assert [line["n"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[2]["result"] == {"errors": {"value": 3}}


def test_a_supervisor_starts_and_stops_on_a_full_disk(folder: BurnInFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BurnInFolder, "replace", refuse)
    monkeypatch.setattr(BurnInFolder, "is_full", lambda _: True)
    monkeypatch.setattr("assay.node.burnin.command._detach", lambda _: None)
    monkeypatch.setattr("assay.node.burnin.command.START_S", 0.0)
    known = answer_burn_in(folder.root, "start", json.dumps(PLAN), "")
    assert (known["id"], "disk with its journal is full" in known["error"]) == ("one", True)
    assert "No space left" in answer_burn_in(folder.root, "start", json.dumps({**PLAN, "id": "two"}), "")["failed"]
    assert "failed" not in answer_burn_in(folder.root, "stop", json.dumps({"id": "one"}), "")


def test_an_order_to_stop_another_burn_in_stops_nothing(folder: BurnInFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    monkeypatch.setattr("assay.node.burnin.command._stop", lambda folder: stopped.append(folder.path))
    answer_burn_in(folder.root, "stop", json.dumps({"id": "older"}), "")
    assert not stopped
    answer_burn_in(folder.root, "stop", json.dumps({"id": "one"}), "")
    assert stopped


def test_after_a_reboot_it_goes_on_with_what_is_left(folder: BurnInFolder) -> None:
    first = ToldMachine(reboots_at=400)
    lines = run(folder, first)
    assert "end" not in lines[-1]
    assert any(task.killed for _, _, task in first.units)
    again = run(folder, ToldMachine())
    assert again[: len(lines)] == lines, "nothing that was written is lost"
    assert again[-1]["end"] == "done"
    assert sum(line["s"] for line in again if line.get("unit") == "gpu_burn") < 660
    assert again[-1]["t"] == pytest.approx(660, abs=3)


def test_a_node_without_its_disk_goes_on_from_what_the_controller_has_read(folder: BurnInFolder) -> None:
    before = run(folder, ToldMachine(reboots_at=400))
    shutil.rmtree(folder.path)
    folder.create()
    lines = run(folder, ToldMachine(), {**PLAN, "done_s": 390.0})
    assert lines[0]["log"] != before[0]["log"]
    assert set(list_units(lines)) == {"gpu_burn"}, "the first phase is not run again"
    assert lines[-1]["t"] == pytest.approx(660, abs=3)


def test_an_hour_in_which_nothing_could_run_is_no_hour_of_load(folder: BurnInFolder) -> None:
    lines = run(folder, ToldMachine(frozen=(100, 3600)))
    assert lines[-1]["m"] > 0
    assert lines[-1]["t"] == pytest.approx(660, abs=3)
    assert len(list_units(lines)) > 10, "only ten seconds of the frozen hour counted"
    assert max(line["s"] for line in lines if "unit" in line) < 80, "nor did they for what ran in it"


def test_a_missing_tool_fills_no_journal(folder: BurnInFolder) -> None:
    machine = ToldMachine()
    machine.absent = {"gpu_burn", "all_reduce", "memory"}
    assert len(list_units(run(folder, machine))) <= 660 / 60 * 2 + 4


def test_it_stops_when_it_is_told_and_an_ended_one_does_not_begin_again(folder: BurnInFolder) -> None:
    folder.replace(STOP, "")
    assert run(folder, ToldMachine())[-1]["end"] == "stopped"
    folder.remove(STOP)
    done = run(folder, ToldMachine())
    assert run(folder, ToldMachine()) == done


def test_a_longer_plan_of_the_same_burn_in_adds_its_phase(folder: BurnInFolder, day: BurnIn) -> None:
    done = run(folder, ToldMachine())
    longer = {**PLAN, "phases": [*PLAN["phases"], {"name": "held", "seconds": 60, "unit_s": 30, "rows": [["memory"]]}]}
    lines = run(folder, ToldMachine(), longer)
    assert list_units(lines[len(done) :], "held") == ["memory", "memory"]
    assert find_phase(make_node_plan(day, "x"), 3600 * 24) is None


def test_a_line_that_power_loss_cut_is_dropped_and_the_cursor_still_fits(folder: BurnInFolder) -> None:
    journal = Journal(folder)
    journal.add(1, "heat", unit="memory", s=1, result={})
    journal.add(2, "heat", unit="memory", s=1, result={})
    path = Path(folder.file(JOURNAL))
    path.write_bytes(path.read_bytes()[:-20])
    Journal(folder).add(3, "heat", unit="memory", s=1, result={})
    log = json.loads(path.read_text().splitlines()[0])["log"]
    assert [line["t"] for line in read_since(folder, f"{log}:2", 2**20)["lines"]] == [3]
    assert len(read_since(folder, "other:2", 2**20)["lines"]) == 3
    assert read_since(folder, "", 10)["more"]


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.9])
def test_racks_rest_at_other_times(shift: float) -> None:
    plan = {"phases": [{"name": "a", "seconds": 900, "unit_s": 60, "rows": [["memory"]], "cycles": [60, 30]}]}
    allowed = [time_with_load(now, 7200 + t, shift) for t in range(900) if (now := find_phase(plan, t))]
    assert sum(seconds == 0 for seconds in allowed) == 300
    assert is_swung_low(0.6, 1.0, 0.5, 0.0)
    assert time_to_edge(0.2, 1.0, 0.5, 0.0) == pytest.approx(0.3)


def test_nodes_whose_burn_ins_began_at_other_times_swing_in_step(tmp_path: Path) -> None:
    """The second one begins 17.3 s later. A unit that begins in a low goes low at once, so that moment is its own."""
    phase = {"name": "swings", "seconds": 120, "unit_s": 120, "rows": [["gpu_burn"]], "hertz": [0.1, 0.5], "duty": 0.5}
    turns = []
    for ahead_s in (0.0, 17.3):
        folder, machine = BurnInFolder(NodeRoot(str(tmp_path / str(ahead_s)))), ToldMachine()
        folder.create()
        machine.ahead_s = ahead_s
        run(folder, machine, {**PLAN, "phases": [phase]})
        turns.append([(at, turn) for at, turn in machine.turns if -10 < at < 85])
    assert turns[0] == turns[1]
    assert len(turns[0]) >= 18


def test_nodes_with_one_plan_compute_the_same_units_of_the_battery_each_a_little_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(_: NodeRoot, parts: list[str], order: LoadOrder) -> dict[str, Any]:
        return {parts[0]: {"after": order.after_unit}}

    monkeypatch.setattr(node_tasks, "run_load", tell)
    phases = [{"name": "heat", "seconds": 100, "unit_s": 60}, {"name": "right", "seconds": 900, "unit_s": 20}]
    machine = NodeMachine(BurnInFolder(NodeRoot(str(tmp_path))), {"id": "day-1", "phases": phases})
    begun = []
    for t in (0.0, 60.2, 99.9, 140.0, 141.7, 159.9, 160.1):
        task = machine.start_unit("battery", 1, t)
        while (result := task.poll()) is None:
            time.sleep(0.01)
        begun.append(result["after"])
    assert begun == ["0:all", "60:all", "60:all", "140:all", "140:all", "140:all", "160:all"]
