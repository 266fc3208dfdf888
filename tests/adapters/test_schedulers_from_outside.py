"""A scheduler that another distribution brings: one module and an entry point, by the real `assay`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.places import SMALLEST
from tests.support.plugin_distribution import PluginDistribution

LSF = '''
"""A scheduler that keeps its cordons in a file."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

from assay.fleetkit import SchedulerNodeStatus, is_our_reason, prefix_reason


class LsfSettings(BaseModel):
    lsf_file: str
    lsf_slots: int = Field(default=1, ge=1)


class LsfScheduler:
    settings_model = LsfSettings
    places_jobs = True

    def __init__(self, settings):
        self.path = Path(LsfSettings.model_validate(settings.other_variables).lsf_file)

    def __eq__(self, other):
        return isinstance(other, LsfScheduler) and other.path == self.path

    def __hash__(self):
        return hash(self.path)

    def cordons(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def list_jobs(self, node):
        return ()

    def read_cordon_reason(self, node):
        return self.cordons().get(node, "")

    def cordon(self, node, reason):
        self.cordon_many({node: reason})

    def uncordon(self, node):
        cordons = self.cordons()
        if is_our_reason(cordons.get(node, "")):
            del cordons[node]
        self.path.write_text(json.dumps(cordons))

    def drain(self, node, reason, now=False):
        self.cordon(node, reason)

    def read_statuses(self, nodes):
        cordons = self.cordons()
        return {node: SchedulerNodeStatus(cordon=cordons.get(node, "")) for node in nodes}

    def cordon_many(self, reasons):
        self.path.write_text(json.dumps({node: prefix_reason(why) for node, why in reasons.items()} | self.cordons()))

    def run_spare(self, node, command, given, deadline_s):
        raise NotImplementedError
'''
ENTRY = {"assay.schedulers": {"lsf": "acme_lsf:LsfScheduler"}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    shutil.copytree(SMALLEST, tmp_path / "fleet")
    return tmp_path / "fleet"


def lsf(root: Path, source: str = LSF) -> PluginDistribution:
    return PluginDistribution(root.parent / "site", "acme-lsf", ENTRY, acme_lsf=source)


def place(root: Path, **variables: object) -> None:
    """Have the node n1 placed by `lsf`, with these variables. Nothing can be read from it."""
    path = root / "inventory" / "pool.yml"
    pool = yaml.safe_load(path.read_text())
    pool["pool-a"]["vars"] = {"reach": ["false"]}
    pool["pool-a"]["hosts"]["n1"] |= {"workloads": "lsf", **variables}
    path.write_text(yaml.safe_dump(pool))


def test_its_settings_are_checked_by_its_own_model(root: Path) -> None:
    place(root, lsf_file="cordons.json", lsf_slots=4)
    lsf(root).assay("check", fleet=root)


@pytest.mark.parametrize(
    ("variables", "message"),
    [({"lsf_slots": 4}, "n1: lsf_file is missing"), ({"lsf_file": "x", "lsf_slots": "many"}, "n1: lsf_slots:")],
)
def test_a_setting_that_it_refuses_is_an_error_at_its_line(
    root: Path, variables: dict[str, object], message: str
) -> None:
    place(root, **variables)
    wrong = lsf(root).assay("check", fleet=root, exit_code=1)
    assert message in wrong
    assert "ASY0026" in wrong
    assert "inventory/pool.yml" in wrong


def test_the_controller_cordons_through_it_and_gives_the_node_back(root: Path) -> None:
    cordons = root / "cordons.json"
    place(root, lsf_file=str(cordons), service_import={"nodes": ["n1"], "reason": "it serves", "expires": "2999-01-01"})
    policy, profile = root / "specs" / "policy.yaml", root / "specs" / "profile.yaml"
    text = policy.read_text().replace("{summary: new,", "{summary: new, entry: [cordon],")
    policy.write_text(text.replace("{summary: in use,", "{summary: in use, entry: [uncordon],"))
    profile.write_text(profile.read_text().replace("actions: [", "actions: [cordon, uncordon, "))
    plugin = lsf(root)
    plugin.assay("check", fleet=root)
    cordons.write_text(json.dumps({"n2": "by hand"}))
    plugin.assay("reconcile", "--once", fleet=root)
    plugin.assay("move", "n1", "onboard", "--reason", "a loud fan", "--who", "ann", fleet=root)
    plugin.assay("reconcile", "--once", fleet=root)
    (reason,) = (why for node, why in json.loads(cordons.read_text()).items() if node == "n1")
    assert reason.startswith("assay: ")
    assert "a loud fan" in reason
    plugin.assay("certify", "n1", "--reason", "fan replaced", "--who", "ann", fleet=root)
    plugin.assay("reconcile", "--once", fleet=root)
    assert json.loads(cordons.read_text()) == {"n2": "by hand"}


def test_without_its_distribution_the_node_is_an_error_with_the_schedulers_that_there_are(root: Path) -> None:
    place(root, lsf_file="x")
    nothing = PluginDistribution(root.parent / "empty", "acme-nothing", {})
    wrong = nothing.assay("check", fleet=root, exit_code=1)
    assert "there is no scheduler lsf, which n1 would use" in wrong
    assert "kubernetes" in wrong


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("", "AttributeError"),
        ("class LsfScheduler:\n    places_jobs = True\n", "acme_lsf:LsfScheduler has no list_jobs, read_cordon_reason"),
    ],
)
def test_one_that_cannot_be_loaded_is_an_error_with_its_distribution(root: Path, source: str, reason: str) -> None:
    place(root, lsf_file="x")
    broken = lsf(root, source)
    wrong = broken.assay("check", fleet=root, exit_code=1)
    assert "the scheduler 'lsf' of the distribution acme-lsf 1.2 cannot be loaded" in wrong
    assert reason in wrong
    assert "acme-lsf 1.2" in broken.assay("reconcile", "--once", fleet=root, exit_code=2)
