"""A transport that another distribution brings: one module and an entry point, by the real `assay`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.places import SMALLEST
from tests.support.plugin_distribution import PluginDistribution

PIGEON = '''
"""Readings that a carrier pigeon brings."""

from pydantic import BaseModel, ConfigDict


class PigeonSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    loft: str
    birds: int = 1


class PigeonTransport:
    settings_name = "pigeon"
    settings_model = PigeonSettings

    def __init__(self, context):
        self.context = context

    def ask(self, node, arguments, deadline_s):
        settings = PigeonSettings.model_validate(node.settings.other_variables["pigeon"])
        return {"probe": {"host": {"hostname": {"value": f"{node.name} by {settings.birds} of {settings.loft}"}}}}
'''
ENTRY = {"assay.transports": {"pigeon": "acme_pigeon:PigeonTransport"}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    shutil.copytree(SMALLEST, tmp_path / "fleet")
    return tmp_path / "fleet"


def pigeon(root: Path, source: str = PIGEON) -> PluginDistribution:
    return PluginDistribution(root.parent / "site", "acme-pigeon", ENTRY, acme_pigeon=source)


def declare(root: Path, **variables: object) -> None:
    path = root / "inventory" / "pool.yml"
    pool = yaml.safe_load(path.read_text())
    pool["pool-a"]["hosts"]["n1"] |= variables
    path.write_text(yaml.safe_dump(pool))


def test_it_reads_a_node_with_its_own_settings(root: Path) -> None:
    declare(root, transport="pigeon", pigeon={"loft": "roof", "birds": 3})
    plugin = pigeon(root)
    plugin.assay("check", fleet=root)
    plugin.assay("observe", "n1", "--out", str(root.parent / "out"), fleet=root)
    (document,) = (root.parent / "out").iterdir()
    assert json.loads(document.read_text())["channels"]["probe"] == {"host": {"hostname": {"value": "n1 by 3 of roof"}}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("[1, 2]", "the document: no object"),
        ('{"probe": {"host": {"hostname": "n1"}}}', "probe.host.hostname: no object"),
        ('{"probe": {"gpu": {"failed": 3}}}', "probe.gpu.failed: no string"),
        ('{"probe": {"host": {"value": {1}}}}', "the document: it is no JSON"),
    ],
)
def test_what_is_no_readings_is_told_with_its_place(root: Path, answer: str, said: str) -> None:
    declare(root, transport="pigeon", pigeon={"loft": "roof"})
    source = f"{PIGEON.rpartition('        return')[0]}        return {answer}\n"
    pigeon(root, source).assay("observe", "n1", "--out", str(root.parent / "out"), fleet=root, exit_code=2)
    (document,) = (root.parent / "out").iterdir()
    reason = json.loads(document.read_text())["channels"]["probe"]["failed"]
    assert reason.startswith(f"the transport pigeon gives no readings: {said}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"birds": 3}, "pigeon.loft: Field required"),
        ({"loft": "roof", "wings": 2}, "pigeon.wings: Extra inputs are not permitted"),
    ],
)
def test_settings_that_it_refuses_are_an_error_at_their_line(
    root: Path, settings: dict[str, object], message: str
) -> None:
    declare(root, transport="pigeon", pigeon=settings)
    wrong = pigeon(root).assay("check", fleet=root, exit_code=1)
    assert message in wrong
    assert "inventory/pool.yml:" in wrong


def test_its_settings_on_a_node_that_it_does_not_read_are_an_error(root: Path) -> None:
    declare(root, pigeon={"loft": "roof"})
    wrong = pigeon(root).assay("check", fleet=root, exit_code=1)
    assert "ASY0130" in wrong
    assert "n1 is not read through pigeon, so pigeon has no effect" in wrong


def test_without_its_distribution_the_transports_that_there_are_are_named(root: Path) -> None:
    declare(root, transport="pigeon", pigeon={"loft": "roof"})
    wrong = PluginDistribution(root.parent / "empty", "acme-nothing", {}).assay("check", fleet=root, exit_code=1)
    assert "should be 'kubernetes', 'local', 'prometheus', 'push', 'slurm' or 'ssh', not 'pigeon'" in wrong


@pytest.mark.parametrize(
    ("source", "reason"),
    [("import no_such_module", "ModuleNotFoundError"), ("class PigeonTransport: ...", "has no settings_name")],
)
def test_one_that_cannot_be_loaded_is_an_error_that_names_its_distribution(
    root: Path, source: str, reason: str
) -> None:
    declare(root, transport="pigeon", pigeon={"loft": "roof"})
    wrong = pigeon(root, source).assay("check", fleet=root, exit_code=1)
    assert "the transport 'pigeon' of the distribution acme-pigeon 1.2 cannot be loaded" in wrong
    assert reason in wrong


def test_the_schema_for_editors_knows_it(root: Path) -> None:
    plugin = pigeon(root)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(plugin.folder), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "assay.declare.schemas", str(root)]
    subprocess.run(command, check=True, env=environment)
    schema = json.loads((root / "specs/schemas/inventory.json").read_text())
    variables = schema["$defs"]["NodeVariables"]["properties"]
    assert "pigeon" in variables["transport"]["enum"]
    assert variables["pigeon"]["required"] == ["loft"]
