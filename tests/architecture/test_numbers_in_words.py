"""A number that a page says is the number of the code: who changes one changes the other."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from inspect import signature
from typing import Any

import pytest
import yaml

from assay.act.ingest.collection import LEAST_GPUS, LEAST_NODES
from assay.act.loop.background_worker import FAILURE_BACKOFF
from assay.act.loop.reconcile_loop import DEFAULT_POLL_INTERVAL_S, LEDGER_WAIT_S, STOP_GRACE_S
from assay.act.remedies.settings import BmcSettingsUpdate
from assay.act.schedules.due_slots import MAX_SLOT_ATTEMPTS
from assay.act.schedules.slot_runner import SLOT_LEASE_S
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.spare_run import GRACE_S, UNWATCHED_AFTER_S, WATCH_INTERVAL_S
from assay.adapters.slurm.client import SLURM_TIMEOUT_S
from assay.decide.plan.backtest import BACKTEST_DAYS
from assay.decide.replay.simulator import REPLAY_HORIZON
from assay.decide.state.service_absences import MIN_RETURNS
from assay.decide.trends.days import (
    LONG_FROM,
    LONG_TO,
    LOOK_BACK_WEEKS,
    MONTHLY_DAYS,
    OWN_FROM,
    OWN_TO,
    RATE_DAYS,
    RECENT_DAYS,
)
from assay.decide.trends.part_evidence import RISES_PER_FALL
from assay.decide.trends.part_findings import ADDS, LEAST_THRESHOLD
from assay.decide.trends.warning_record import LEAST_READ
from assay.decide.trends.warnings import LONG_ABSENCE
from assay.decide.trust.record import RECORD_DAYS
from assay.fabric.compare.repair import MANY_NODES
from assay.fabric.learn.judged_design import MIN_SHARE
from assay.fabric.weekly.week import DAYS, MIN_HOURS, MIN_SCANS
from assay.ledger.history.queries import MIN_FLAKY_TURNS, WINDOW_RUNS
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.specs.burn_in import BurnIn
from assay.model.specs.golden_digests import LEAST_NODES as LEAST_GOLDEN_NODES
from assay.model.specs.known_issues import ExcuseLimits
from assay.model.specs.schedules import RolloutRules
from assay.model.specs.trend_rules import ChangeDetector
from assay.model.specs.trust_rules import TrustRules
from assay.model.specs.workload import CollectiveWorkload
from assay.node.agent.delivery import DeliveryPace
from assay.tell.messages.routes import SINK_BACKOFF
from assay.tell.messages.webhook_notices import MAX_NODES
from assay.tell.pages.fleet_pages import MAX_LETTERS
from assay.tell.report.junit_format import MAX_OUTCOME_CASES
from assay.tell.server.agent_tokens import COMMAND_CACHE_S, FILE_CACHE_S
from assay.tell.server.ledger_changes import STREAM_S
from assay.tell.server.visitor_shares import MAX_STREAMS, MAX_WAITING
from assay.validate.runs.sharding import MAX_SHARD_NODES, MAX_SHARD_OUTCOMES
from tests.architecture.claims import read_words
from tests.support.places import ROOT

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
Read = dict[str, Any]


@cache
def spec(path: str) -> Read:
    document: Read = yaml.safe_load((ROOT / "specs" / path).read_text())
    return document


def default_of(model: Any, name: str) -> Any:
    return model.model_fields[name].default


POLICY = spec("lifecycle/default.yaml")
STATES, CORDONS = POLICY["states"], POLICY["cordons"]
HEAT = next(phase for phase in spec("burnin/day.yaml")["phases"] if phase["name"] == "heat-cycles")
TRENDS = default_of(ChangeDetector, "peers_at_least")
DOUBLED = [SINK_BACKOFF.wait_s(times) / 60 for times in (1, 2, 3, 100)]
AGAIN = "at most three times in 24 h"

NUMBERS: list[tuple[str, str, Any, Any]] = [
    ("docs/agent.md", "after five minutes by default", DEFAULT_POLL_INTERVAL_S / 60, 5),
    ("docs/agent.md", "every 15 seconds how it is", DeliveryPace().heartbeat_s, 15),
    ("docs/agent.md", "decides on them within a second", LEDGER_WAIT_S, 1),
    ("docs/agent.md", "Within two seconds the server refuses it", FILE_CACHE_S, 2),
    ("docs/agent.md", "A token from a `command` takes up to five minutes", COMMAND_CACHE_S / 60, 5),
    (
        "docs/burn-in.md",
        "If more than a tenth of a part's runs gave no result",
        default_of(BurnIn, "results_percent"),
        90,
    ),
    ("docs/burn-in.md", "20 minutes on and 10 off", list(HEAT["cycles"].values()), [20, 10]),
    ("docs/burn-in.md", "power swings of 0.1 to 10 Hz", HEAT["swings"]["hertz"][::2], [0.1, 10]),
    ("docs/collectives.md", "below 93 % (`slow_below`)", default_of(CollectiveWorkload, "slow_below"), 0.93),
    ("docs/commands.md", "that the new limits or policy would have moved in the last 30 days", BACKTEST_DAYS, 30),
    ("docs/commands.md", "of at least two nodes whose GPUs all agree", LEAST_GOLDEN_NODES, 2),
    ("docs/commands.md", "with that of at least 19 others of its kind and firmware", TRENDS - 1, 19),
    ("docs/commands.md", "The change of a part in two months", OWN_FROM, 60),
    ("docs/commands.md", "Evaluate the stored scans of a week", DAYS, 7),
    (
        "docs/configuration.md",
        "read for up to 60 seconds",
        BmcSettingsUpdate.__dataclass_fields__["read_back_s"].default,
        60,
    ),
    ("docs/customers.md", "at least five nodes that came back from the same way", MIN_RETURNS, 5),
    ("docs/customers.md", "at most 500 in one message", MAX_NODES, 500),
    ("docs/customers.md", "after 1, 2, 4 … minutes, at most 60", DOUBLED, [1, 2, 4, 60]),
    ("docs/explain.md", "at the latest 90 days after the last event", REPLAY_HORIZON / DAY, 90),
    ("docs/fabric.md", "If fewer than three quarters of the cables follow a pattern", MIN_SHARE, 0.75),
    ("docs/fabric.md", "readings with fewer than 8 scans", MIN_SCANS, 8),
    ("docs/fabric.md", "with fewer than 8 scans, or less than two days", [MIN_SCANS, MIN_HOURS], [8, 48]),
    ("docs/fabric.md", "`assay fabric evaluate [DESIGN] [--days 7]` looks at the stored scans of a week", DAYS, 7),
    ("docs/fabric.md", "eight nodes or more lose bandwidth", MANY_NODES, 8),
    (
        "docs/kubernetes.md",
        "that remain after 20 s",
        signature(KubernetesScheduler).parameters["patience_s"].default,
        20,
    ),
    ("docs/kubernetes.md", "with a grace period of 1 s", GRACE_S, 1),
    ("docs/kubernetes.md", "to `assay.dev/watched` every 3 s", WATCH_INTERVAL_S, 3),
    ("docs/kubernetes.md", "If that is older than 15 s", UNWATCHED_AFTER_S, 15),
    ("docs/lifecycle.md", "passes, after 24 h", STATES["test"]["soak_hours"], 24),
    ("docs/lifecycle.md", "after 6 h", STATES["zap"]["deadline"]["hours"], 6),
    ("docs/lifecycle.md", "Once a day, assay reports what waits", POLICY["waiting"]["remind_hours"], 24),
    (
        "docs/lifecycle.md",
        "more than two of the 18 nodes",
        [POLICY["racks"]["nvl72"][key] for key in ("more_than", "of")],
        [2, 18],
    ),
    ("docs/load-tools.md", "with at least 40 GPUs of other nodes", LEAST_GPUS, 40),
    ("docs/pages.md", "With more than 1,500 nodes, each rack is one tile", MAX_LETTERS, 1500),
    ("docs/pages.md", "A stream ends after 15 minutes", STREAM_S / 60, 15),
    ("docs/pages.md", "32 waiting and 16 streams", [MAX_WAITING, MAX_STREAMS], [32, 16]),
    ("docs/people.md", "are meant for an hour, or for `--within`", default_of(TrustRules, "order_hours"), 1),
    ("docs/people.md", "after 1, 2, 4 … minutes, at most 60", DOUBLED, [1, 2, 4, 60]),
    ("docs/plans.md", "what it would have meant in the last 30 days", BACKTEST_DAYS, 30),
    ("docs/reconcile.md", "waits up to ten seconds for work in progress", STOP_GRACE_S, 10),
    ("docs/reconcile.md", "with `does: observe`, else five minutes", DEFAULT_POLL_INTERVAL_S / 60, 5),
    (
        "docs/reconcile.md",
        "after 1, 2, 4 … seconds, at most 60",
        [FAILURE_BACKOFF.wait_s(n) for n in (1, 2, 3, 99)],
        [1, 2, 4, 60],
    ),
    ("docs/reconcile.md", "dated more than five minutes in the future", MAX_CLOCK_SKEW / MINUTE, 5),
    ("docs/reconcile.md", "resumes the slot within a minute", SLOT_LEASE_S / 60, 1),
    ("docs/reconcile.md", "After three attempts, the slot has `failed`", MAX_SLOT_ATTEMPTS, 3),
    ("docs/rollouts.md", "by default one of each node spec and pool", default_of(RolloutRules, "canaries"), 1),
    (
        "docs/silent-corruption.md",
        "nothing can be told within four hours",
        STATES["confirmation"]["deadline"]["hours"],
        4,
    ),
    (
        "docs/silent-corruption.md",
        "with at least 40 GPUs, or 20 nodes, of the fleet",
        [LEAST_GPUS, LEAST_NODES],
        [40, 20],
    ),
    ("docs/slurm.md", "does not answer within 15 s", SLURM_TIMEOUT_S, 15),
    ("docs/lifecycle.md", AGAIN, [CORDONS["again"], CORDONS["window_hours"]], [3, 24]),
    ("docs/trends.md", "With fewer than 20 peers, assay claims nothing.", TRENDS, 20),
    ("docs/trends.md", "then it is quiet for five weeks", OWN_TO + 2 * RECENT_DAYS, 35),
    (
        "docs/trends.md",
        "of its last 7 days with that of its days 60 to 21 before, its last 14 days with its days 260 to 75 before",
        [RECENT_DAYS, OWN_FROM, OWN_TO, MONTHLY_DAYS, LONG_FROM, LONG_TO],
        [7, 60, 21, 14, 260, 75],
    ),
    (
        "docs/trends.md",
        "for 0.1 false alarms per 1,000 nodes and day",
        default_of(ChangeDetector, "alarms_per_1000_node_days"),
        0.1,
    ),
    ("docs/trends.md", "what they have beyond 2.5, counters beyond 1.5", list(ADDS), [2.5, 1.5]),
    ("docs/trends.md", "once it is there for 75 days, its level", LONG_TO, 75),
    ("docs/trends.md", "above a threshold, at least 4.3", LEAST_THRESHOLD, 4.3),
    ("docs/trends.md", "rises five times as often as it falls", RISES_PER_FALL, 5),
    ("docs/trends.md", "extends the last two weeks in a straight line", RATE_DAYS, 14),
    ("docs/trends.md", "In 12 weeks before", LOOK_BACK_WEEKS, 12),
    ("docs/trends.md", "was measured on at least 80 % of the days", LEAST_READ, 0.8),
    ("docs/trends.md", "left service for more than a day", LONG_ABSENCE / DAY, 1),
    ("docs/trust.md", "show the last 30 days", RECORD_DAYS, 30),
    ("docs/tutorials/lab-to-fleet.md", "A yes is meant for an hour", default_of(TrustRules, "order_hours"), 1),
    (
        "docs/validation.md",
        "at most 1,000 nodes or 100,000 outcomes",
        [MAX_SHARD_NODES, MAX_SHARD_OUTCOMES],
        [1000, 100_000],
    ),
    ("docs/validation.md", "a case per node above 2,000 outcomes", MAX_OUTCOME_CASES, 2000),
    (
        "docs/validation.md",
        "its last ten outcomes on a subject changed at least three times",
        [WINDOW_RUNS, MIN_FLAKY_TURNS],
        [10, 3],
    ),
    (
        "docs/validation.md",
        "at most 90 days ahead",
        [default_of(ExcuseLimits, "max_days"), POLICY["excuses"]["max_days"]],
        [90, 90],
    ),
]
"""File, words, what the code or the shipped spec has, and what the words say."""


@pytest.mark.parametrize(
    ("file", "words", "real", "said"), NUMBERS, ids=[f"{row[0]}: {row[1][:50]}" for row in NUMBERS]
)
def test_a_number_is_the_codes(file: str, words: str, real: Any, said: Any) -> None:
    assert words in read_words(file), f"{file} says something else now: say there what the code does"
    assert real == said, f"{file} says `{words}`, and the code has {real}"
