"""Every panel's query, on a real Prometheus that scrapes assay with the lab's data, gives at least one series.

What takes longer in the lab than a test should is added to the ledger: a wait, a failed attempt, scheduled work.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from assay.cli.workspace import Workspace
from assay.ledger.store import Ledger
from assay.model.entries.effects import EffectIntentEntry, EffectTriedEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import DecisionEntry
from assay.model.entries.schedule_entries import NodeLoadedEntry, ScheduleRanEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.model.timestamps import parse_time
from assay.tell.server.agent_tokens import find_reader_token
from assay.tell.server.metrics_routes import start_metrics_server
from tests.deploy.monitoring.dashboard_queries import FILES, list_panels
from tests.support.forked_assay import assay
from tests.support.reserved_ports import reserve_ports
from tests.support.serving_fleet import make_serving_fleet, merge_bmc_image, start_history

NODES = ["n0001", "n0002", "n0003", "n0004"]
FAULTS = (
    ("n0001", "gpu.xid", "--with", "gpu=0", "--with", "xid=79"),
    ("n0002", "ib.link.flap", "--with", "hca=mlx5_5"),
    ("n0002", "gpu.nvlink.down", "--with", "gpu=1", "--with", "links=2"),
    ("n0003", "psu.failed", "--with", "psu=3"),
)
PATIENCE_S = 60.0
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: assay
  static_configs: [{{targets: ['{target}']}}]
  authorization: {{credentials_file: {token}}}
"""


@contextmanager
def running(home: Path, *command: str) -> Iterator[None]:
    with (home / "prometheus.log").open("wb") as out:
        process = subprocess.Popen(command, cwd=home, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture
def eventful(tmp_path: Path) -> Iterator[Path]:
    """A fleet in the lab with faults, a restart, orders of people, a paused rollout and scheduled work."""
    home = tmp_path / "fleet"
    make_serving_fleet(home, NODES)
    start_history(home)
    assay(home, "lab", "up")
    assay(home, "reconcile", "--once")
    for name, fault, *words in FAULTS:
        assay(home, "lab", "inject", fault, "--node", name, *words)
    assay(home, "hold", "n0002", "--reason", "RCA", "--who", "ann")
    assay(home, "move", "n0004", "triage", "--reason", "it rattles", "--who", "ann")
    merge_bmc_image(home, "01.05.12")
    assay(home, "reconcile", "--once")
    (rollout,) = json.loads(assay(home, "rollout", "--format", "json"))["rollouts"]
    assay(home, "rollout", "pause", rollout["id"], "--reason", "wait", "--who", "ann")
    _add_what_takes_long(home)
    yield home
    assay(home, "lab", "down")


def _add_what_takes_long(home: Path) -> None:
    ledger = Ledger.open(home / ".assay-lab" / "ledger.sqlite")
    at = ledger.entries()[-1].at
    waits = DecisionEntry("d-1", "production", "draining", "pending", "x.yaml:1 hot", "", (), ("job 7",))
    added: list[tuple[str, EntryContent]] = [
        ("n0003", waits),
        ("n0003", EffectIntentEntry("e-1", "uncordon", "d-0")),
        ("n0003", EffectTriedEntry("e-1", "uncordon", 1, "no answer", at)),
        ("n0004", NodeLoadedEntry("idle", at, parts={"battery": {"ended": "cut"}}, reason="job 7", gone_ms=180)),
        ("", ScheduleRanEntry("weekly", "a", "suite", at, 1, "done", "")),
    ]
    ledger.append(*(content.make_entry(f"added-{content.kind}", at, node) for node, content in added))
    failed = Outcome("suites/fabric/test_links.py::test_link", "a/n0004", "n0004", "fail", "slow", evidence_at=at)
    ledger.record(SuiteRun("added", at), [failed], parse_time(at))
    ledger.close()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.5)


def ask(port: int, query: str) -> list[Any]:
    """Return the series of a query. Prometheus answers a wrong expression with 400, which raises."""
    words = urlencode({"query": query})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{words}", timeout=30) as answer:
        return list(json.load(answer)["data"]["result"])


def has_scrapes(port: int) -> bool:
    try:
        return any(float(one["value"][1]) >= 3 for one in ask(port, "count_over_time(assay_ledger_up[1h])"))
    except (urllib.error.URLError, OSError):
        return False


@pytest.mark.slow(minutes=3)
def test_every_panel_shows_something_of_an_eventful_fleet(eventful: Path) -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("not installed: prometheus; as root: sh tools/system-packages")
    (port,) = reserve_ports(1)
    context = Workspace(eventful).controller_context(reads_only=True)
    url = start_metrics_server("127.0.0.1:0", lambda: context, lambda: True, print)
    token = find_reader_token(context.home).absolute()
    (eventful / "prometheus.yml").write_text(CONFIG.format(target=urlsplit(url).netloc, token=token))
    address = f"--web.listen-address=127.0.0.1:{port}"
    with running(eventful, "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=samples", address):
        wait_for(lambda: has_scrapes(port), "Prometheus scrapes")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(port, "sum(assay_nodes")
        empty = [
            f"{file.stem}: {title}: {query}"
            for file in FILES
            for title, queries in list_panels(file)
            for query in queries
            if not ask(port, query.removesuffix(" or vector(0)"))
        ]
    assert not empty, "\n".join(empty)
