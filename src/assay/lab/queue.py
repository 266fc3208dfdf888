"""What the lab's scheduler remembers: jobs with an end, and cordons with a reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any


class Queue:
    """Jobs and cordons in memory. A job whose time is over reads `ended` from then on."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.cordons: dict[str, str] = {}
        self.closed_at: dict[str, str] = {}
        self._now, self._jobs, self._numbers = now, list[dict[str, Any]](), count(1)

    def jobs(self, node: str | None = None) -> list[dict[str, Any]]:
        """Return the jobs that run on `node`, or every job that ever was."""
        now = self._now()
        for job in self._jobs:
            if job["state"] == "running" and datetime.fromisoformat(job["ends_at"]) <= now:
                job["state"] = "ended"
        return [job for job in self._jobs if node is None or (job["node"] == node and job["state"] == "running")]

    def cordon(self, node: str, reason: str) -> str:
        """Close a node for a reason; return the one that stands, which is an earlier one where there was any."""
        if node not in self.cordons:
            self.cordons[node], self.closed_at[node] = reason, self._now().isoformat()
        return self.cordons[node]

    def uncordon(self, node: str) -> None:
        """Open a node, whoever closed it."""
        self.cordons.pop(node, None)
        self.closed_at.pop(node, None)

    def place(self, name: str, owner: str, node: str, seconds: float) -> dict[str, Any] | None:
        """Start a job of `seconds`, or return None where the node is cordoned."""
        if node in self.cordons:
            return None
        now = self._now()
        job = {
            "id": str(next(self._numbers)),
            "name": name,
            "owner": owner,
            "node": node,
            "since": now.isoformat(),
            "ends_at": (now + timedelta(seconds=seconds)).isoformat(),
            "state": "running",
        }
        self._jobs.append(job)
        return job

    def requeue(self, node: str) -> list[dict[str, Any]]:
        """End the node's running jobs; the record says that they were requeued, and when."""
        ended = self.jobs(node)
        for job in ended:
            job.update(state="requeued", ends_at=self._now().isoformat())
        return ended
