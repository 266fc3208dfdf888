"""The page of idle verification: each part of the load, and how many GPUs it covered how long ago."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.applications import Starlette

from assay.declare.loader import load_fleet
from assay.tell.pages import page_routes
from tests.tell.asgi_calls import Caller, let_in, make_state
from tests.tell.fleet_with_history import make_fleet_with_history

SCHEDULE = """kind: Schedules
name: idle
sources: [test]
schedules:
  idle:
    does: idle-verification
    cron: "0 * * * *"
    verification: {phase: test, parts: [memory, battery], seconds: 60, within_minutes: 20, at_once: 9, told_after: 9,
      cover_days: 3}
"""


def test_the_page_counts_the_gpus_in_service_by_part_and_age(tmp_path: Path) -> None:
    root = make_fleet_with_history(tmp_path).root
    file = root / "specs/schedules/idle.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SCHEDULE)
    pool = root / "inventory/h100-a.yml"
    pool.write_text(pool.read_text().replace("workloads: none", "workloads: slurm"))
    fleet = load_fleet(root)
    state = make_state(let_in(fleet, None), root / ".assay")
    page = Caller.reading(Starlette(routes=[*page_routes.routes(state)])).get("/idle").body.decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    (gpus,) = {
        int(count) for count in re.findall(r"h100-a idle: (\d+) GPUs in service; each is due within 3 days", text)
    }
    assert gpus > 0
    for part in ("memory", "battery", "battery: every unit"):
        assert f" {part} 0 0 0 0 {gpus} " in text, "nothing was ever covered"
