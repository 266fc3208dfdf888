"""The benchmark counts exactly the requests that one read of a BMC makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.session import RedfishSession
from bench import bmcs


def test_a_read_asks_for_what_the_bench_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = RedfishSession.request

    def noted(self: RedfishSession, method: str, path: str, *rest: Any, **request: Any) -> Any:
        query = "".join(f"?{name}={text}" for name, text in (request.get("args") or {}).items())
        asked.append(path.removeprefix("/redfish/v1/") + query)
        return ask(self, method, path, *rest, **request)

    monkeypatch.setattr(RedfishSession, "request", noted)
    with bmcs.bmcs(tmp_path / "bmcs", 2) as ports:
        nodes = bmcs.nodes_at(ports, tmp_path / "bmcs" / "lab" / "ca.pem")
        _, _, failed = bmcs.read_all(nodes[:1])
    assert failed == 0
    assert sorted(asked[1:]) == sorted(bmcs.READS)


def test_the_playbook_asks_for_the_first_of_them_with_trust_and_in_one_task_each(tmp_path: Path) -> None:
    tasks = [task["ansible.builtin.uri"] for task in bmcs._tasks(tmp_path)]
    assert len(tasks) == bmcs.TASKS
    assert all("ca_path" in task and "validate_certs" not in task for task in tasks)
