"""The Helm chart, rendered by Helm itself: it makes the shipped manifests, and refuses mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.manifests import DEPLOY, WHOLE, needs_helm, read_objects, run_helm

pytestmark = needs_helm
RENDER = """
import json, sys, helm_python as helm
with helm.Chart.load(sys.argv[1]) as chart:
    answers = []
    for values in json.loads(sys.argv[2]):
        try:
            files = chart.render(values, name="demo", namespace="gpu-ops")
            answers.append("\\n---\\n".join(text for name, text in files.items() if name.endswith(".yaml")))
        except Exception as error:
            answers.append({"refused": str(error)})
print(json.dumps(answers))
"""
LINT = "import sys, json, helm_python as helm; print(json.dumps(helm.lint(sys.argv[1])))"
MANIFESTS = "from tools.manifests.__main__ import render; print(render(), end='')"
VALIDATE = "import sys; from kubernetes_validate.__main__ import main; sys.exit(main())"
DIGEST = "registry.site.org/assay-agent@sha256:" + "5e" * 32
OFF: dict[str, Any] = {
    "controller": {"enabled": False},
    "agent": {"enabled": False},
    "spare": {"enabled": False},
    "notices": {"enabled": False},
}
OUR_NODES = {"gpu": "yes", "nvidia.com/gpu.present": None}
REFUSED = {
    "a misspelt name": ({"agnet": {"enabled": False}}, "agnet"),
    "a word for yes": ({"agent": {"enabled": "yes"}}, "enabled"),
    "an image without tag and digest": ({"images": {"agent": "registry.site.org/assay-agent"}}, "agent"),
    "a digest that is too short": ({"images": {"agent": "registry.site.org/assay-agent@sha256:5e5e"}}, "agent"),
    "an address without TLS": ({"agent": {"server": "http://assay.site.org"}}, "server"),
}


def render(*values: dict[str, Any]) -> list[Any]:
    done = run_helm(RENDER, DEPLOY / "chart", json.dumps(values))
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_helm_finds_no_mistake_in_the_chart() -> None:
    done = run_helm(LINT, DEPLOY / "chart")
    found = json.loads(done.stdout)
    assert found["errors"] == []
    assert [one["error"] for one in found["messages"]] == ["icon is recommended"]


def test_the_manifest_of_kustomize_is_what_the_chart_makes() -> None:
    done = run_helm(MANIFESTS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == WHOLE.read_text(), "make manifests"


def test_values_switch_parts_off_and_reach_where_they_belong() -> None:
    everything, bare, site = (
        read_objects(text)
        for text in render(
            {},
            OFF,
            {
                "images": {"agent": DIGEST},
                "agent": {
                    "server": "https://assay.site.org:8443",
                    "nodeSelector": {"gpu": "yes", "nvidia.com/gpu.present": None},
                },
                "controller": {"storage": {"className": "fast"}, "tlsSecret": "our-tls"},
                "networkPolicy": {"enabled": False},
                "disruptionBudget": {"enabled": False},
            },
        )
    )
    assert {namespace for _, namespace, _ in everything} == {"", "gpu-ops", "kube-system"}
    assert "Namespace" not in {kind for kind, _, _ in everything}, "the namespace is the site's"
    assert {kind for kind, _, _ in bare} == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    bound = everything["ClusterRoleBinding", "", "assay"]["subjects"]
    assert bound == [{"kind": "ServiceAccount", "name": "assay", "namespace": "gpu-ops"}]
    assert {"NetworkPolicy", "PodDisruptionBudget"}.isdisjoint(kind for kind, _, _ in site)
    agent = site["DaemonSet", "gpu-ops", "assay-agent"]["spec"]["template"]["spec"]
    assert agent["nodeSelector"] == {"gpu": "yes"}
    assert agent["containers"][0]["image"] == DIGEST
    assert {"name": "ASSAY_SERVER", "value": "https://assay.site.org:8443"} in agent["containers"][0]["env"]
    controller = site["StatefulSet", "gpu-ops", "assay"]["spec"]
    assert controller["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"
    volumes = controller["template"]["spec"]["volumes"]
    assert {one["secret"]["secretName"] for one in volumes if "secret" in one} == {"our-tls", "assay-repository"}


def test_values_that_mean_nothing_are_refused_by_name() -> None:
    answers = render(*(values for values, _ in REFUSED.values()))
    for (what, (_, named)), answer in zip(REFUSED.items(), answers, strict=True):
        assert isinstance(answer, dict), what
        assert named in answer["refused"], what


@pytest.mark.slow(minutes=0.5)
@pytest.mark.parametrize("version", ["1.33", "1.37"])
def test_kubernetes_knows_every_field(version: str, tmp_path: Path) -> None:
    misspelt = tmp_path / "misspelt.yaml"
    misspelt.write_text(WHOLE.read_text().replace("hostNetwork:", "hostNetwrok:"))
    for file, code in ((WHOLE, 0), (misspelt, 1)):
        done = run_helm(VALIDATE, "--kubernetes-version", version, "--strict", file)
        assert done.returncode == code, done.stdout + done.stderr
