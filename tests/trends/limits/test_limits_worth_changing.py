"""`assay trends limits`: limits that never fire, always fire or fire in vain, and the diff of a better one."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trends.planted_history import PlantedLedger, PlantedReading, keep_planted
from typer.testing import CliRunner

from assay.cli.verbs.evidence.trends import trends_app
from assay.fleet.fleet_loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.backtest_report import LimitRecord
from assay.model.errors import AssayError
from assay.trends.limits.limit_diff import make_limit_diff
from assay.trends.limits.limit_review import find_chance

ROOT = Path(__file__).resolve().parents[3]
START, DAYS = datetime(2026, 3, 1, 6, tzinfo=UTC), 90
NODES = [f"n{number:04}" for number in range(1, 6)]
HEAT, POWER = "suites/production/test_gpu.py::test_gpu_temperature", "suites/test_x.py::test_power"
SPIKES, WIDTH = "suites/test_x.py::test_spikes", "suites/test_x.py::test_width"
FAILED = {"n0001": 60, "n0002": 50, "n0003": 70}
"""The day on which its gpu0 fails, after ten warm days."""


def list_readings(line: str) -> Iterator[PlantedReading]:
    chance = random.Random(5)
    for number in range(DAYS):
        at = START + timedelta(days=number)
        for node in NODES:
            for place in (f"gpu{gpu}" for gpu in range(4)):
                is_warm = place == "gpu0" and 0 < FAILED.get(node, -1) - number <= 10
                value = chance.gauss(75 if is_warm else 60, 0.5)
                limit = {"name": "gpu_temperature", "at_most": 85.0, "source": line}
                yield PlantedReading(at, node, place, HEAT, value=value, **limit)
                draw = {"name": "power", "unit": "W", "at_most": 700.0, "source": "specs/gone.yaml:3"}
                yield PlantedReading(at, node, place, POWER, value=chance.gauss(720, 5), **draw)
                spiked = number in (20, 45) and place == "gpu3"
                errors = {"name": "errors", "unit": "count", "at_most": 100.0}
                yield PlantedReading(at, node, place, SPIKES, value=chance.gauss(150 if spiked else 25, 2), **errors)
                yield PlantedReading(at, node, place, WIDTH, name="width", value=16, unit="", at_least=16, at_most=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example fleet with a planted history, in which three parts get warm before they fail."""
    folder = tmp_path_factory.mktemp("fleet")
    for name in ("specs", "inventory", "suites"):
        shutil.copytree(ROOT / name, folder / name)
    line = load_fleet(folder).lines["NodeSpec/hgx-h100", "limits.gpu_temperature"]
    keep_planted(folder / "reports" / "history", list_readings(line))
    planted = PlantedLedger(START - timedelta(days=30))
    planted.enrol(*NODES)
    for node, number in FAILED.items():
        planted.fail(node, "gpu0", "gpu.xid.79", START + timedelta(days=number), hours=5)
    ledger = Ledger.open(folder / ".assay" / "ledger.sqlite")
    ledger.append(*planted.in_order())
    ledger.close()
    return folder


def ask(folder: Path, form: str = "json") -> str:
    as_of = (START + timedelta(days=DAYS - 1, hours=1)).isoformat()
    answer = CliRunner().invoke(trends_app, ["limits", "--fleet", str(folder), "--as-of", as_of, "--format", form])
    assert answer.exception is None, answer.exception
    return answer.stdout


@pytest.fixture(scope="module")
def limits(folder: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(ask(folder))["limits"]}


def test_each_limit_behaves_as_it_was_planted(limits: dict[str, dict[str, Any]]) -> None:
    assert {name: (one["behaviour"], one["side"]) for name, one in limits.items()} == {
        "power": ("always", "at_most"),
        "errors": ("in vain", "at_most"),
        "gpu_temperature": ("never", "at_most"),
        "width": ("never", "equals"),
    }
    sizes = {(one["readings"], one["parts"], one["sampled_days"], one["sampled_parts"]) for one in limits.values()}
    assert sizes == {(DAYS * 20, 20, DAYS * 20, 20)}
    assert limits["errors"]["sampled_days_fired"] == 10


def test_how_far_the_nearest_values_stay_is_told_in_noise(limits: dict[str, dict[str, Any]]) -> None:
    heat = limits["gpu_temperature"]
    assert heat["noise"] == pytest.approx(0.5, rel=0.2)
    assert heat["nearest"] == pytest.approx(9, abs=0.6), "the warm parts: nearly 76 of 85 °C"
    assert heat["nearest_in_noise"] == pytest.approx(heat["nearest"] / heat["noise"], rel=0.01)
    assert limits["width"]["nearest_in_noise"] is None, "a width has no noise"


def test_a_tighter_limit_is_suggested_with_what_it_would_have_foreseen(limits: dict[str, dict[str, Any]]) -> None:
    heat = limits["gpu_temperature"]
    assert 61.5 < heat["suggestion"]["value"] < 64, "above all that healthy parts reached"
    assert heat["suggestion"]["is_better"]
    assert heat["suggestion"]["chance"] < 0.001
    record = heat["suggestion"]["record"]
    assert (record["foreseen"], record["failures"], record["wrong"], record["lead_days"]) == (3, 3, 0, 10)
    assert heat["record"]["foreseen"] == 0


def test_looser_limits_are_suggested_where_alarms_are_in_vain(limits: dict[str, dict[str, Any]]) -> None:
    errors = limits["errors"]
    assert errors["suggestion"]["value"] > 150
    assert (errors["record"]["wrong"], errors["suggestion"]["record"]["wrong"]) == (6, 0), "four nodes went out then"
    assert limits["power"]["suggestion"]["value"] > 720
    assert limits["width"]["suggestion"] is None


def test_the_diff_applies_to_the_spec_and_changes_the_one_limit(
    folder: Path, limits: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    shutil.copytree(folder / "specs", tmp_path / "specs")
    before = (folder / "specs/nodes/hgx-h100.yaml").read_bytes()
    subprocess.run(["git", "apply", "-"], input=limits["gpu_temperature"]["diff"], text=True, cwd=tmp_path, check=True)
    shutil.copytree(folder / "inventory", tmp_path / "inventory")
    changed, old = load_fleet(tmp_path).node_specs["hgx-h100"].limits, load_fleet(folder).node_specs["hgx-h100"].limits
    assert changed["gpu_temperature"].value == limits["gpu_temperature"]["suggestion"]["value"]
    assert "foresees 3 of 3 failures" in changed["gpu_temperature"].source
    assert {name for name in old if old[name] != changed[name]} == {"gpu_temperature"}
    assert (folder / "specs/nodes/hgx-h100.yaml").read_bytes() == before, "nothing is changed by itself"


def test_a_limit_that_is_no_value_of_a_spec_gets_no_diff(limits: dict[str, dict[str, Any]]) -> None:
    assert (limits["power"]["diff"], limits["errors"]["diff"]) == ("", "")
    assert "no value of a spec" in limits["errors"]["why_no_diff"]


def test_people_read_it_in_lines(folder: Path) -> None:
    told = ask(folder, "text")
    assert "4 limits measured in 90 days" in told
    assert "power ≤ 700 W of hgx-h100 (test_power): 1800 readings of 20 parts, on 100% of the days" in told
    assert "errors ≤ 100 count of hgx-h100 (test_spikes): 1800 readings of 20 parts, 10 alarms, 6 of them ended" in told
    assert "then: foresees 3 of 3 failures (10 d before), 3 alarms: nothing followed 0, cannot tell of 0" in told
    assert "+++ b/specs/nodes/hgx-h100.yaml" in told


@pytest.mark.parametrize(
    "text",
    [
        "limits:\n  heat: {value: 85, unit: °C, source: here}  # why\n",
        "limits:\n  heat:\n    value: 85   # why\n    unit: °C\n    source: >-\n      here\n\n  other: {value: 1}\n",
        '# ü 😀\nlimits: {"heat": {"unit": "°C", "value": 85.0, "source": "here"}}\n',
    ],
)
def test_a_diff_keeps_everything_else(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    diff = make_limit_diff("a.yaml", text, "heat", 79.5, 'seen: "79"')
    subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=tmp_path, check=True)
    changed = (tmp_path / "a.yaml").read_text(encoding="utf-8")
    assert "79.5" in changed
    assert '"seen: \\"79\\""' in changed
    assert changed.count("#") == text.count("#")


@pytest.mark.parametrize(
    ("right", "wrong", "failures", "chance"), [(3, 0, 3, 0.05**3), (1, 9, 3, 1 - 0.95**10), (0, 5, 3, 1), (2, 0, 0, 0)]
)
def test_what_chance_explains_is_known(right: int, wrong: int, failures: int, chance: float) -> None:
    record = LimitRecord(failures, right + wrong, right, wrong, 0, right, None)
    assert find_chance(record, part_days=20 * 90) == pytest.approx(chance)


def test_a_text_without_the_limit_is_refused() -> None:
    with pytest.raises(AssayError, match="no value of the limit heat"):
        make_limit_diff("a.yaml", "limits: {other: {value: 1}}\n", "heat", 2, "")
