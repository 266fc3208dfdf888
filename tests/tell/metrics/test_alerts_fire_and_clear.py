"""Alerts on what a fleet's own metrics say before something breaks, while it is broken, and after: promtool judges.

The samples are scraped from the ledger in which it broke, and not made up for the rule.
"""

from __future__ import annotations

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from assay.act.loop.context import ControllerContext
from assay.model.entries.effects import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.entries.node_entries import HoldEntry, ReleaseEntry, TransitionEntry
from assay.model.entries.tickets import TicketClosedEntry, TicketOpenedEntry
from assay.model.ticket import Ticket
from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
from tests.support.places import ROOT
from tests.tell.metrics.conftest import NOW

RULES = sorted(map(str, (ROOT / "deploy/prometheus").glob("*.yml")), key=lambda name: "alerts" in name)
QUIET_MINUTES, BROKEN_MINUTES, MENDED_MINUTES = 30, 150, 180
LONG_AGO = timedelta(days=20)
TICKET = Ticket("t1", "h100-a/n0003/gpu4", "Reseat gpu4", "n0003", severity="catastrophic")


def list_nodes_out(first: str, last: str) -> list[tuple[str, EntryContent]]:
    """Return the moves of ten nodes."""
    return [(f"n{number:04}", TransitionEntry(first, last, "d1")) for number in range(1, 11)]


STORIES: dict[str, tuple[timedelta, list[tuple[str, EntryContent]], list[tuple[str, EntryContent]]]] = {
    "AssayHoldTooLong": (LONG_AGO, [("n0003", HoldEntry("ann", "RCA"))], [("n0003", ReleaseEntry("ann", "done"))]),
    "AssayTicketsTooOld": (
        LONG_AGO,
        [("n0003", TicketOpenedEntry(TICKET))],
        [("n0003", TicketClosedEntry("t1", "passed", "assay"))],
    ),
    "AssayEffectStuck": (
        LONG_AGO,
        [("n0003", EffectIntentEntry("e1", "reboot", "d1"))],
        [("n0003", EffectVerifiedEntry("e1", "reboot", "new boot"))],
    ),
    "AssayGoodputLow": (
        timedelta(minutes=1),
        list_nodes_out("production", "triage"),
        list_nodes_out("triage", "production"),
    ),
    "AssayAgentItemsLost": (
        timedelta(minutes=1),
        [("n0003", ObservationFailedEntry("agent", "its buffer was full"))],
        [],
    ),
}
"""How long ago it broke, what the ledger says of that, and what it says once it is over."""


def scrape(context: ControllerContext) -> dict[str, float]:
    text = format_metrics(FleetMetrics(lambda: context)).decode()
    scraped = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            scraped[f"{sample.name}{{{labels}}}"] = sample.value
    return scraped


def judge(folder: Path, alert: str, scrapes: list[dict[str, float]], *, at: list[tuple[int, bool]]) -> str:
    """Return what promtool says against this alert's firing or keeping quiet at these minutes, "" for nothing."""
    spans = (QUIET_MINUTES, BROKEN_MINUTES, MENDED_MINUTES)
    series = []
    for name in {name for scraped in scrapes for name in scraped}:
        parts = [f"{scraped.get(name, '_')}x{span - 1}" for scraped, span in zip(scrapes, spans, strict=True)]
        series.append({"series": name, "values": " ".join(parts)})
    query = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)'
    expected = [
        {"eval_time": f"{minute}m", "expr": query, "exp_samples": [{"labels": "{}", "value": int(fires)}]}
        for minute, fires in at
    ]
    test: dict[str, Any] = {"interval": "1m", "input_series": series, "promql_expr_test": expected}
    file = folder / "story.yml"
    file.write_text(yaml.safe_dump({"rule_files": RULES, "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool, of the Debian package prometheus")
@pytest.mark.parametrize("alert", STORIES)
def test_an_alert_fires_while_it_is_broken_and_clears_after(
    alert: str, context: ControllerContext, tmp_path: Path
) -> None:
    ago, breaks, mends = STORIES[alert]
    context.ledger.append(
        *(
            TransitionEntry("discovered", "production", "d0").make_entry(f"in-{name}", context.now, name)
            for name in context.fleet.nodes
        )
    )
    scrapes = [scrape(context)]

    def write(entries: list[tuple[str, EntryContent]], word: str, at: str) -> None:
        made = (content.make_entry(f"{word}-{node}", at, node) for node, content in entries)
        context.ledger.append(*made)
        scrapes.append(scrape(context))

    write(breaks, "broken", (NOW - ago).isoformat())
    write(mends, "mended", NOW.isoformat())
    last = QUIET_MINUTES + BROKEN_MINUTES
    fires = last - 5 if mends else QUIET_MINUTES + 5
    at = [(QUIET_MINUTES - 1, False), (fires, True), (last + MENDED_MINUTES - 5, False)]
    assert judge(tmp_path, alert, scrapes, at=at) == ""
    assert judge(tmp_path, alert, scrapes, at=[(fires, False)]), "a story that does not hold is noticed"
