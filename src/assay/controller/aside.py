"""Carries out what is due by the clock beside the loop, so that nothing that happens meanwhile waits for it."""

from __future__ import annotations

from threading import Thread

from assay.controller.desk import Desk
from assay.controller.schedule import carry_out, due
from assay.controller.timetable import Task
from assay.model.errors import Trouble


class Aside:
    """The tasks that this process is at, each in a thread of its own. What ends with the process is taken up again."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []

    def look(self, desk: Desk) -> list[Task]:
        """Begin what is due now, and return it. Raises Trouble where the ledger cannot be read."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        at_it = {thread.name for thread in self._threads}
        begun = [task for task in due(desk, desk.clock.now()) if str(task) not in at_it]
        for task in begun:
            thread = Thread(target=_carried_out, args=(desk, task), name=str(task), daemon=True)
            thread.start()
            self._threads.append(thread)
        return begun

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until everything that was begun has ended, or so many seconds for each; return whether it has."""
        for thread in self._threads:
            thread.join(timeout_s)
        return not any(thread.is_alive() for thread in self._threads)


def _carried_out(desk: Desk, task: Task) -> None:
    try:
        carry_out(desk, task)
    except Trouble as trouble:
        desk.progress(f"{task}: {trouble}")
