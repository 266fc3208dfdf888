"""The shipped manifests: they apply together in any order, give rights away, and name what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.cli.verbs.reconcile import reconcile
from assay.cli.verbs.serve import serve
from tests.deploy.manifests import DEPLOY, PLAIN, WHOLE, list_containers, list_pods, read_objects

OBJECTS = read_objects(WHOLE.read_text())
PRIVILEGED = {"assay-agent", "assay-spare"}
"""Pods on nodes, which read the kernel's log and the host's devices."""
READ_ONLY = {"assay", "assay-agent"}
NAMES_OF_SECRETS = re.compile(r"PASSWORD|TOKEN|SECRET|KEY$|ASSAY_LEDGER")


def test_what_two_manifests_declare_is_the_same_so_any_order_of_them_gives_the_same_cluster() -> None:
    """The one applied last takes nothing away, as a namespace without its label would."""
    seen: dict[tuple[str, str, str], Any] = {}
    for file in (*PLAIN, WHOLE):
        for name, one in read_objects(file.read_text()).items():
            assert seen.setdefault(name, one) == one, f"{file.name} declares another {name}"
            assert one["kind"] != "Namespace" or one["metadata"]["labels"], f"{file.name} takes the labels away"
    assert seen.keys() == OBJECTS.keys(), "deploy/kustomize/assay.yaml is old: make manifests"


def test_each_manifest_can_be_the_first_since_it_brings_its_namespace() -> None:
    for file in PLAIN:
        names = list(read_objects(file.read_text()))
        assert names[0] == ("Namespace", "", "assay"), file.name
        assert {namespace for _, namespace, _ in names} <= {"", "assay", "kube-system"}


def test_every_pod_is_closed_but_those_that_must_not_be() -> None:
    pods = dict(list_pods(OBJECTS))
    assert pods.keys() == PRIVILEGED | {"assay"}
    for name, pod in pods.items():
        for container in list_containers(pod):
            context = container["securityContext"]
            assert bool(context.get("privileged")) == (name in PRIVILEGED)
            assert bool(context.get("readOnlyRootFilesystem")) == (name in READ_ONLY)
        assert pod.get("automountServiceAccountToken", True) == (name == "assay")
    general = pods["assay"]["securityContext"]
    assert general["runAsNonRoot"]
    assert general["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in list_containers(pods["assay"]):
        context = container["securityContext"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]


def test_secrets_are_referred_to_and_never_written() -> None:
    assert "Secret" not in {kind for kind, _, _ in OBJECTS}
    for _, pod in list_pods(OBJECTS):
        for container in list_containers(pod):
            written = [one["name"] for one in container.get("env", ()) if "value" in one]
            assert [name for name in written if NAMES_OF_SECRETS.search(name)] == []


def test_selectors_ports_mounts_and_accounts_name_what_is_there() -> None:
    workload = OBJECTS["StatefulSet", "assay", "assay"]["spec"]
    labels, pod = workload["template"]["metadata"]["labels"], workload["template"]["spec"]
    service = OBJECTS["Service", "assay", "assay"]["spec"]
    policy = OBJECTS["NetworkPolicy", "assay", "assay"]["spec"]
    budget = OBJECTS["PodDisruptionBudget", "assay", "assay"]["spec"]
    for selector in (workload["selector"], policy["podSelector"], budget["selector"]):
        assert selector["matchLabels"] == labels
    assert service["selector"] == labels
    ports = {port["name"] for container in pod["containers"] for port in container.get("ports", ())}
    assert {one["targetPort"] for one in service["ports"]} == ports
    assert {one["port"] for rule in policy["ingress"] for one in rule["ports"]} == ports
    assert ("ServiceAccount", "assay", pod["serviceAccountName"]) in OBJECTS
    volumes = {one["name"] for one in pod["volumes"]}
    volumes |= {one["metadata"]["name"] for one in workload["volumeClaimTemplates"]}
    assert {mount["name"] for one in list_containers(pod) for mount in one["volumeMounts"]} == volumes


def test_every_service_has_probes_of_its_own_ports() -> None:
    pod = dict(list_pods(OBJECTS))["assay"]
    with_ports = [container for container in pod["containers"] if "ports" in container]
    assert [one["name"] for one in with_ports] == ["controller", "serve"]
    for container in with_ports:
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] in ports
            assert container[probe]["httpGet"]["path"] == "/healthz"


@pytest.mark.parametrize(("name", "verb"), [("controller", reconcile), ("serve", serve)])
def test_what_a_container_is_told_are_options_of_its_command(name: str, verb: Any) -> None:
    pod = dict(list_pods(OBJECTS))["assay"]
    (container,) = (one for one in pod["containers"] if one["name"] == name)
    words = container.get("args", [name])
    assert words[0] in (name, verb.__name__)
    assert {word[2:].partition("=")[0].replace("-", "_") for word in words[1:]} <= set(verb.__annotations__)


needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl here (Debian: kubernetes-client)")


@needs_kubectl
def test_an_overlay_sets_images_by_digest_the_address_and_the_repository(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    shutil.copytree(DEPLOY / "kustomize", tmp_path / "kustomize")
    page = (DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    (example,) = re.findall(r"```yaml\n(# kustomization\.yaml.*?)```", page, re.DOTALL)
    example = example.replace("sha256:…", f"sha256:{'5e' * 32}").replace("PATH/deploy", "..")
    (overlay / "kustomization.yaml").write_text(example)
    done = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = read_objects(done.stdout)
    assert {kind for kind, _, _ in made} == {kind for kind, _, _ in OBJECTS}
    images = {one["image"] for _, pod in list_pods(made) for one in list_containers(pod)}
    assert len(images) == 4
    assert all(re.fullmatch(r"registry\.site\.org/assay-[a-z]+@sha256:[0-9a-f]{64}", image) for image in images), images
    assert "https://assay.site.org:8443" in done.stdout
    assert "git@git.site.org:gpu/fleet.git" in done.stdout


def test_the_manifest_says_who_made_it() -> None:
    assert "make manifests" in WHOLE.read_text().splitlines()[0]
    assert yaml.safe_load((DEPLOY / "kustomize" / "kustomization.yaml").read_text())["resources"] == [WHOLE.name]
