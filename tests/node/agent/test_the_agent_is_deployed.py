"""The unit, the DaemonSet and the one file that they run fit each other."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from assay.model.specs.serving import ConnectionLimits
from assay.node.agent.pack import ENTRY
from assay.node.probe.pack import build_pack, find_needed_modules
from assay.tell.server.server import SPARE_FILES
from tests.support.places import ROOT

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "assay-agent.service"
SERVE_UNIT = DEPLOY / "assay-serve.service"
CONTAINER_NEEDS = {"name", "image", "command", "args", "env", "resources", "securityContext", "volumeMounts"}


def options() -> set[str]:
    said = subprocess.run(
        [sys.executable, "-m", "assay.node.agent", "--help"], capture_output=True, text=True, check=True
    )
    return {word.strip("[]()|") for word in said.stdout.split() if word.strip("[](|").startswith("--")}


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "assay-agent.pyz"
    path.write_bytes(build_pack(ENTRY))
    return path


def test_the_one_file_is_small_and_runs_alone(file):
    assert file.stat().st_size < 300_000
    said = subprocess.run([sys.executable, "-I", file, "--help"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("Usage: assay agent")


def test_the_one_file_carries_the_probe_and_nothing_of_the_controller(file):
    modules = find_needed_modules(ENTRY)
    assert "assay.node.probe.__main__" in modules
    assert {name.split(".")[1] for name in modules if "." in name} <= {"node", "model"}
    rooms = {name.split(".")[2] for name in modules if name.startswith("assay.node.")}
    assert rooms <= {"agent", "burnin", "load_tools", "probe"}
    command = [sys.executable, "-m", "assay.node.probe", "--root", "/nowhere"]
    said = subprocess.run(command, env={"PYTHONPATH": str(file)}, capture_output=True, text=True, check=True)
    assert said.stdout.startswith('{"probe"')


def test_the_servers_unit_reloads_by_the_signal_and_has_a_file_for_each_connection():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(SERVE_UNIT)
    service = unit["Service"]
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(service["LimitNOFILE"]) >= ConnectionLimits().total + SPARE_FILES


def test_the_unit_bounds_the_agent_and_takes_its_rights_away():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert {"MemoryMax", "CPUQuota", "CPUQuotaPeriodSec", "TasksMax"} <= set(service)
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == "CAP_SYSLOG"
    assert "ProtectKernelLogs" not in service  # it would take /dev/kmsg away
    words = {word.partition("=")[0] for word in service["ExecStart"].split() if word.startswith("--")}
    assert words <= options()


def documents() -> dict[str, dict]:
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "assay-agent.yaml").read_text())}


def test_the_daemonset_holds_together():
    found = documents()
    assert set(found) == {"Namespace", "ServiceAccount", "DaemonSet"}
    spec = found["DaemonSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert found["ServiceAccount"]["metadata"]["name"] == spec["template"]["spec"]["serviceAccountName"]
    assert found["DaemonSet"]["metadata"]["namespace"] == found["Namespace"]["metadata"]["name"]


def test_the_daemonsets_container_is_bounded_and_mounts_what_it_names():
    pod = documents()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert set(container) == CONTAINER_NEEDS
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert {word.partition("=")[0] for word in container["args"]} <= options()
    assert "hostPath" in next(one for one in pod["volumes"] if one["name"] == "secrets")
