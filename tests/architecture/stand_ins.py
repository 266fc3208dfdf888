"""Asks each stand-in of `outside_calls.yaml` to take something, and returns the words with which it refuses it.

A judge gets what the list gives it (a line of words, a request, a changed file) and a folder of its own. It returns ""
for what the stand-in takes.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from assay.act.boot.image_store import ImageStore
from assay.declare.loader import load_fleet
from assay.lab.node.shell import install_tools
from assay.lab.node.stub import build_stub
from assay.lab.tools.command_lines import read_command_lines
from assay.model.errors import AssayError
from tests.act.boot.provisioners import TOKEN as IRONIC_TOKEN
from tests.act.boot.provisioners import Ironic, Maas, serve
from tests.act.boot.test_files_of_a_bucket import make_artifact, serve_bucket
from tests.declare.starter import gitlab_runner
from tests.declare.starter.github_runner import GitHub as GitHubRunner
from tests.deploy.manifests import HELM_PYTHON, WHOLE, run_helm
from tests.deploy.test_files_for_others import judge as judge_by_schema
from tests.deploy.test_the_chart import VALIDATE, render
from tests.lab.bmc.conftest import Builder
from tests.node.load_tools.test_finding_the_load_tool import APPTAINER_EXEC, ask_srun, parse_strictly
from tests.support.kubernetes.kube_rights import Rights
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.places import ROOT
from tests.support.ticket_sinks import GitHub, Jira, Service

Judge = Callable[[Any, Path], str]
AT_MOST_S = 60


def ask_lab_tool(line: str, folder: Path) -> str:
    """Run a tool of a virtual node. It refuses as its entry of `options.json` says that the real one does."""
    program, *words = shlex.split(line)
    entries = read_command_lines()
    code, stream, text = (entries.get(" ".join([program, *words[:1]])) or entries[program])["refuses"]
    environment = {"PATH": "/usr/bin:/bin", "ASSAY_ROOT": str(folder)}
    command = [install_tools(folder / "tools") / program, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    printed: str = getattr(done, stream)
    expected = re.escape(text).replace(r"\{word\}", ".+").replace(r"'\?'", "'.'")
    return printed if done.returncode == code and re.match(expected, printed) else ""


def ask_nvml(call: list[Any], folder: Path) -> str:
    """Call the library in C by NVIDIA's bindings."""
    library = build_stub(folder / "lib")
    if library is None:
        pytest.skip("no C compiler (package gcc) for the stub NVML")
    (folder / "nvml.json").write_text(json.dumps({"count": 1, "slots": "0", "g0.pci": "00000000:1B:00.0"}))
    name, *given = call
    program = f"import pynvml; pynvml.nvmlInit(); pynvml.{name}(*{given!r})"
    environment = {"LD_LIBRARY_PATH": str(library.parent), "NVML_STUB": str(folder / "nvml.json")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2]


def ask_apptainer(line: str, folder: Path) -> str:
    """Parse the words of `apptainer exec` by the flags of its source."""
    del folder
    try:
        parse_strictly(shlex.split(line), APPTAINER_EXEC)
    except AssertionError as refusal:
        return str(refusal)
    return ""


def ask_srun_with_pyxis(line: str, folder: Path) -> str:
    """Give srun words, those of pyxis by its source, the others to the real srun."""
    said = ask_srun(shlex.split(line), folder)
    return said if "unrecognized" in said or "invalid" in said else ""


def ask_bmc(request: dict[str, Any], folder: Path) -> str:
    """Send a request to a virtual BMC."""
    builder = Builder(load_fleet(ROOT), folder)
    try:
        lab = builder("n0003")
        return _read_refusal(lab.ask(request["method"], request["path"], json=request.get("body")))
    finally:
        builder.stop()
        builder.loop.close()


def ask_kubernetes(request: dict[str, Any], folder: Path) -> str:
    """Send a request to the stand-in for the API server."""
    server = KubeFake(folder, {"admin": Rights("admin", all=True)})
    server.start()
    try:
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        return _send(server.address, request, headers, str(folder / "ca.pem"))
    finally:
        server.stop()
        server.kubelets.stop()


def _ask_service(service: Service, headers: dict[str, str]) -> Judge:
    def ask(request: dict[str, Any], folder: Path) -> str:
        del folder
        with service.up():
            return _send(service.url, request, {"Content-Type": "application/json", **headers})

    return ask


GITHUB_HEADERS = {
    "Authorization": "Bearer token",
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
}


def ask_ironic(request: dict[str, Any], folder: Path) -> str:
    """Send a request to the stand-in for Ironic."""
    del folder
    with serve(Ironic("n1", lambda image: None)) as url:
        return _send(url, request, {"X-Auth-Token": IRONIC_TOKEN, "X-OpenStack-Ironic-API-Version": "1.82"})


def ask_maas(request: dict[str, Any], folder: Path) -> str:
    """Send a request to the stand-in for MAAS; without a signature it refuses each."""
    del folder
    with serve(Maas("x", lambda series: None)) as url:
        now = f'oauth_version="1.0", oauth_nonce="n", oauth_timestamp="{time.time():.0f}"'
        signed = 'OAuth oauth_signature_method="PLAINTEXT", oauth_consumer_key="consumer", oauth_token="token", '
        return _send(url, request, {"Authorization": f'{signed}oauth_signature="&key", {now}'})


def ask_bucket(environment: dict[str, str], folder: Path) -> str:
    """Fetch an object with other variables of the environment."""
    with pytest.MonkeyPatch.context() as patch, serve_bucket(patch) as url:
        for name, text in environment.items():
            patch.setenv(name, text)
        try:
            ImageStore(folder / "store").fetch_file(make_artifact(url), "bmc")
        except AssayError as refusal:
            return str(refusal)
    return ""


def ask_chart(values: dict[str, Any], folder: Path) -> str:
    """Render the chart with values, by Helm."""
    del folder
    _need_helm()
    (answer,) = render(values)
    return "" if isinstance(answer, str) else str(answer["refused"])


def ask_kubernetes_schema(change: list[str], folder: Path) -> str:
    """Validate the manifest after a change, by the schema of Kubernetes."""
    _need_helm()
    file = _change(WHOLE, change, folder)
    done = run_helm(VALIDATE, "--kubernetes-version", "1.33", "--strict", file)
    return done.stdout + done.stderr if done.returncode else ""


def _need_helm() -> None:
    if not HELM_PYTHON.exists():
        pytest.skip("no Helm here: `make manifests` installs it")


def ask_schema(change: list[str], folder: Path) -> str:
    """Validate a file after a change, by a schema that check-jsonschema brings: schema, file, old text, new text."""
    schema, file, *replaced = change
    code, said = judge_by_schema(f"vendor.{schema}", _change(ROOT / file, replaced, folder))
    return said if code else ""


def ask_grafana(change: list[str], folder: Path) -> str:
    """Read a dashboard after a change by Grafana's own classes: what these do not know is lost."""
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    file, *replaced = change
    document = _drop_nulls(json.loads(_change(ROOT / file, replaced, folder).read_text()))
    read = json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder))
    return "\n".join(_list_lost(document, read, ""))


def _drop_nulls(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _drop_nulls(below) for name, below in part.items() if below is not None}
    return [_drop_nulls(below) for below in part] if isinstance(part, list) else part


def _list_lost(given: Any, read: Any, path: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(read, dict):
        for name, below in given.items():
            yield from _list_lost(below, read.get(name), f"{path}.{name}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for at, below in enumerate(given):
            yield from _list_lost(below, read[at], f"{path}[{at}]")
    elif given != read:
        yield f"{path}: unknown to Grafana's classes, which read {read!r}"


def run_github_job(job: dict[str, Any], folder: Path) -> str:
    """Let the stand-in for GitHub's runner run a job."""
    forge, api = SimpleNamespace(folder=folder, remote=folder), SimpleNamespace(url="http://127.0.0.1:9", tokens={})
    runner: Any = GitHubRunner(forge, folder, api)  # type: ignore[arg-type]
    facts = {"GITHUB_REF_NAME": "main", "GITHUB_SHA": "0"}
    try:
        ran = runner._run({"jobs": {"job": job}}, "job", {}, facts, folder, "refs/heads/main")
    except (AssertionError, KeyError) as refusal:
        return str(refusal)
    return "" if ran.is_green else str(ran)


def run_gitlab_job(job: dict[str, Any], folder: Path) -> str:
    """Let the stand-in for GitLab's runner run a job."""
    pipeline = {"variables": {"GIT_DEPTH": "0", "GIT_STRATEGY": "none"}, "job": job}
    forge = SimpleNamespace(remote=folder, head="0")
    runner: Any = gitlab_runner.GitLab(forge, folder, {}, {})  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gitlab_runner, "git", lambda *words: json.dumps(pipeline))
        try:
            ran = runner._run("job", "0", {}, folder)
        except AssertionError as refusal:
            return str(refusal)
    return "" if ran.is_green else str(ran)


def _change(file: Path, replaced: list[str], folder: Path) -> Path:
    """Return a copy of a file with a text replaced, which must be there."""
    text = file.read_text()
    for old, new in zip(replaced[::2], replaced[1::2], strict=True):
        assert old in text, f"{file} holds no {old!r}"
        text = text.replace(old, new)
    (copy := folder / f"copy{file.suffix}").write_text(text)
    return copy


def _send(base: str, request: dict[str, Any], headers: dict[str, str], authority: str = "") -> str:
    with requests.Session() as session:
        session.trust_env = False
        options: dict[str, Any] = {"headers": {**headers, **request.get("headers", {})}, "timeout": AT_MOST_S}
        if "body" in request:
            options["json"] = request["body"]
        return _read_refusal(
            session.request(request["method"], base + request["path"], verify=authority or True, **options)
        )


def _read_refusal(answer: requests.Response) -> str:
    return f"{answer.status_code} {answer.text}" if answer.status_code >= 400 else ""


JUDGES: dict[str, Judge] = {
    "tool of a virtual node": ask_lab_tool,
    "NVML": ask_nvml,
    "apptainer exec": ask_apptainer,
    "srun with pyxis": ask_srun_with_pyxis,
    "BMC": ask_bmc,
    "Kubernetes": ask_kubernetes,
    "GitHub's API": _ask_service(GitHub("token"), GITHUB_HEADERS),
    "Jira's API": _ask_service(Jira("Bearer token"), {"Authorization": "Bearer token"}),
    "Ironic": ask_ironic,
    "MAAS": ask_maas,
    "bucket": ask_bucket,
    "chart": ask_chart,
    "schema of Kubernetes": ask_kubernetes_schema,
    "schema": ask_schema,
    "Grafana's classes": ask_grafana,
    "GitHub's runner": run_github_job,
    "GitLab's runner": run_gitlab_job,
}
SLOW = {"BMC", "Kubernetes", "chart", "schema of Kubernetes", "Grafana's classes", "bucket"}
"""They start a server or another Python, and take seconds."""
