"""The real supervisor runs the real `assay-load`. Its disk fills, nobody asks, it is killed, and the node starts again.

All goes by the machine's own clock. Only the boot id and the place of the disk are the test's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.act.ingest.burn_ins import find_wrong_result, list_voted_runs
from assay.node.burnin.journal import FOLDER
from assay.node.probe.node_access import BOOT_ID_FILE
from assay.validate.active.burn_in_windows import (
    CLOCK_SLACK_S,
    cut_windows,
    find_fruitless_part,
    find_invented_hours,
    find_verdict,
)

pytestmark = pytest.mark.slow(minutes=3)
PHASE = {"name": "right-results", "seconds": 36_000, "unit_s": 3, "rows": [["battery", "training"]], "duty": 1.0}
PLAN = {"id": "day-1", "watch_s": 5, "shift": 0.0, "phases": [PHASE]}
Answer = dict[str, Any]


class RealNode:
    """A node whose supervisor is started, read and stopped as the controller does it: by the probe."""

    def __init__(self, root: Path) -> None:
        self.root, self.began_at = root, time.monotonic()
        self.disk = root / FOLDER.lstrip("/")
        self.disk.mkdir(parents=True)
        self.start_boot("boot-1")

    def start_boot(self, name: str) -> None:
        file = self.root / BOOT_ID_FILE.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)

    def ask(self, request: str) -> Answer:
        words = ["-m", "assay.node.probe", "--root", str(self.root), "--burn-in", request, "--plan", json.dumps(PLAN)]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
        answer: Answer = json.loads(done.stdout)["burn_in"]
        assert "failed" not in answer, answer
        return answer

    def read_until(self, is_so: Callable[[Answer], object]) -> Answer:
        """Return the first answer that is so; what must come, never how soon."""
        while not is_so(answer := self.ask("read")):
            time.sleep(0.5)
        return answer

    def find_supervisor(self) -> int:
        return int((self.disk / "lock").read_text())

    def list_loads(self) -> set[int]:
        """Return the processes of `assay-load`, by the sessions that the supervisor wrote down."""
        _, *sessions = (self.disk / "sessions").read_text().split()
        stats = {int(file.parent.name): read_stat(file) for file in Path("/proc").glob("[0-9]*/stat")}
        return {pid for pid, (state, session) in stats.items() if state != "Z" and session in sessions}

    def fill_disk(self) -> None:
        """Take all that is free, to the last byte."""
        with (self.disk / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 512)
            except OSError:
                return


def read_stat(file: Path) -> tuple[str, str]:
    try:
        state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return "Z", ""
    return state, session


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealNode]:
    if os.geteuid():
        pytest.skip("only root can give the journal a small disk of its own: run this test as root")
    assert shutil.which("assay-load", path=str(Path(sys.executable).parent))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    real = RealNode(tmp_path / "root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", real.disk], check=True)
    try:
        yield real
        real.ask("stop")
    finally:
        subprocess.run(["umount", "--lazy", real.disk], check=True)


def list_results(answer: Answer) -> list[Answer]:
    return [line for line in answer["lines"] if "unit" in line]


def test_the_load_goes_on_or_resumes_and_its_hours_are_right(node: RealNode) -> None:
    node.ask("start")
    before = node.read_until(list_results)
    node.fill_disk()
    full = node.read_until(lambda answer: answer["error"])
    assert (full["running"], "disk with its journal is full" in full["error"]) == (True, True)
    while not (loads := node.list_loads()):
        time.sleep(0.1)
    while loads & node.list_loads():  # nobody asks meanwhile: the load that ran ends, and the next one begins
        time.sleep(0.5)
    time.sleep(2 * PHASE["unit_s"])  # type: ignore[operator]
    (node.disk / "filler").unlink()
    written = node.read_until(lambda answer: len(list_results(answer)) >= len(list_results(before)) + 3)
    assert written["error"] == ""
    assert [line["n"] for line in written["lines"]] == list(range(1, len(written["lines"]) + 1)), "no line is lost"

    os.kill(node.find_supervisor(), signal.SIGKILL)
    killed = node.read_until(lambda answer: not answer["running"])
    left = node.list_loads()
    node.ask("start")
    resumed = node.read_until(lambda answer: len(list_results(answer)) > len(list_results(killed)))
    assert not left & node.list_loads(), "what the killed one left is ended"

    node.start_boot("boot-2")
    ended = node.read_until(lambda answer: not answer["running"])
    assert ended["t"] >= resumed["t"]
    node.ask("start")
    node.read_until(lambda answer: len(list_results(answer)) > len(list_results(ended)))
    node.ask("stop")
    judge(node, node.ask("read"))


def judge(node: RealNode, answer: Answer) -> None:
    """Read the journal as the controller does."""
    lines, passed_s = answer["lines"], time.monotonic() - node.began_at
    assert not node.list_loads()
    assert [line["run"]["boot"] for line in lines if "run" in line] == ["boot-1", "boot-1", "boot-2"]
    assert (lines[-1]["end"], answer["running"]) == ("stopped", False)
    assert lines[-1]["t"] <= passed_s
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    results = list_results(answer)
    loaded_s = sum(line["s"] for line in results)
    assert 0 < loaded_s <= lines[-1]["t"], "hours are what was computed"
    runs = list_voted_runs(lines)
    assert {part for part, _ in runs} == {"battery", "training"}
    assert len(runs) == len(results), "each was computed by the real assay-load"
    assert find_wrong_result(runs) is None
    assert find_verdict(lines, {}) is None
    assert find_fruitless_part({}, lines) is None
    assert find_invented_hours(lines, "", (answer["boot"], answer["m"]), passed_s) == ""
    longer = [{**line, "t": line["t"] + CLOCK_SLACK_S + passed_s} for line in lines]
    assert "after it was ordered" in find_invented_hours(longer, "", (answer["boot"], answer["m"]), passed_s)
    (window,) = cut_windows(lines, 36_000)
    assert sum(work.units for work in window.window.parts.values()) == len(results)
