"""`assay show NODE` prints the effective spec, each value with its file and line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import load_verb
from tests.support.places import SMALLEST

show_app = load_verb("show")

LARGE = "kind: NodeSpec\nname: large\nextends: small\nfans: 4\nlimits:\n  gpu_temperature: {value: 80}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A fleet whose node n1 has a spec laid over another, a secret and a reference."""
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root)
    pool = (root / "inventory/pool.yml").read_text()
    bmc = "bmc_address: 10.0.0.1, bmc_credentials: {env: BMC}"
    pool = pool.replace("node_spec: small", f"node_spec: large, {bmc}, our_token: CANARY", 1)
    (root / "inventory/pool.yml").write_text(pool)
    (root / "specs/large.yaml").write_text(LARGE)
    return root


def shown(root: Path, *arguments: str) -> str:
    """Return what `assay show` prints."""
    result = CliRunner().invoke(show_app, [*arguments, "--fleet", str(root)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_each_value_stands_beside_the_line_that_says_it(root: Path) -> None:
    lines = [line.split("  # ") for line in shown(root, "n1").splitlines() if "  # " in line]
    places = {text.strip(): where for text, where in lines}
    assert places["fans: 4"] == "specs/large.yaml:4"
    assert places["cpu_threads: 2"] == "specs/node.yaml:12"
    assert places["rack: r1"] == "inventory/pool.yml:4"
    assert places["version: '1'"] == "specs/bundle.yaml:6"
    assert places["bmc_port: 443"] == "default"


def test_what_comes_from_two_files_is_taken_apart(root: Path) -> None:
    assert shown(root, "n1", "limits.gpu_temperature").splitlines() == [
        "# NodeSpec/large",
        "gpu_temperature:     # specs/large.yaml:6",
        "  value: 80          # specs/large.yaml:6",
        "  unit: °C           # specs/node.yaml:17",
        "  source: datasheet  # specs/node.yaml:17",
    ]


def test_what_one_line_says_stays_on_one_line(root: Path) -> None:
    assert "psus: {count: 2, needed: 1}" in shown(root, "n1")


def test_each_part_is_yaml_that_reads_back(root: Path) -> None:
    parts = shown(root, "n1").split("\n\n")
    node, spec, bundle, profile = (yaml.safe_load(part) for part in parts)
    assert node["rack"] == "r1"
    assert spec["limits"]["gpu_temperature"] == {"value": 80, "unit": "°C", "source": "datasheet"}
    assert bundle == yaml.safe_load((root / "specs/bundle.yaml").read_text())
    declared = yaml.safe_load((root / "specs/profile.yaml").read_text())
    assert profile == {**declared, "host_settings": True}, "the default that applies is shown too"


def test_secrets_are_not_shown_and_references_are(root: Path) -> None:
    text = shown(root, "n1") + shown(root, "n1", "--format", "json")
    assert "CANARY" not in text
    assert "bmc_credentials: {env: BMC}" in text


def test_json_lists_every_value_once(root: Path) -> None:
    document = json.loads(shown(root, "n1", "limits", "--format", "json"))
    assert document["node"] == "n1"
    assert document["values"][0] == {
        "of": "NodeSpec/large",
        "path": "limits.gpu_temperature.value",
        "value": 80,
        "where": "specs/large.yaml:6",
    }


@pytest.mark.parametrize(("arguments", "said"), [(["n9"], "there is no node n9"), (["n1", "fan"], "has no value fan")])
def test_what_is_not_there_is_told(root: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(show_app, [*arguments, "--fleet", str(root)])
    assert said in str(result.exception)


PROVISIONING = """\
kind: Provisioning
name: p
sources: [us]
url: http://boot.example:8080
secure_url: https://boot.example:8443
files: [{path: /etc/motd, content: hello}]
"""


def test_what_a_node_gets_at_its_start_is_shown(root: Path) -> None:
    (root / "specs/provisioning.yaml").write_text(PROVISIONING)
    text = shown(root, "n1", "--cloud-init")
    assert text.startswith("# --- meta-data\ninstance-id: ATTEMPT\nlocal-hostname: n1\n")
    assert "#cloud-config\n" in text
    assert "path: /etc/motd" in text
    assert "CANARY" not in text
    assert sorted(json.loads(shown(root, "n1", "--cloud-init", "--format", "json"))) == [
        "meta-data",
        "user-data",
        "vendor-data",
    ]


def test_a_node_that_assay_does_not_boot_gets_nothing(root: Path) -> None:
    result = CliRunner().invoke(show_app, ["n1", "--cloud-init", "--fleet", str(root)])
    assert "no Provisioning names pool" in str(result.exception)
