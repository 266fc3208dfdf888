"""What is thought out without a cluster: patches that touch only our keys, selectors, and a taint's value."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.adapters.kubernetes import cordon as keys_of_ours
from assay.adapters.kubernetes import cordon as nodes
from assay.adapters.kubernetes.jobs import find_waiting_pods, matches_selector
from assay.adapters.kubernetes.spare_run import RUN_SCRIPT, build_spare_pod, find_missing_image, is_preemptible
from assay.model.cordon_ownership import is_our_reason
from assay.model.specs.node.load_tools import LoadDelivery
from tests.support.kubernetes.kube_make import node, pod
from tests.support.kubernetes.kube_patch import patched
from tests.support.kubernetes.kube_rights import MANIFEST, rights_of
from tests.support.kubernetes.kube_store import wrote

STRATEGIC = "application/strategic-merge-patch+json"
words = st.text(max_size=90)
keys = st.sampled_from(["nvidia.com/gpu", "maintenance", "node.kubernetes.io/not-ready", "assay.dev/other"])
taints = st.lists(st.fixed_dictionaries({"key": keys, "effect": st.just("NoSchedule")}), max_size=3)


@st.composite
def any_node(draw: st.DrawFn) -> dict[str, Any]:
    """A node with whatever others wrote on it."""
    made = node("n1")
    made["metadata"] |= {"resourceVersion": "7", "annotations": draw(st.dictionaries(keys, words, max_size=2))}
    made["spec"] = {"taints": draw(taints)}
    if draw(st.booleans()):
        made["spec"]["unschedulable"] = True
        wrote({"metadata": {}, "spec": {}}, made, "kubectl")
    return made


@given(any_node(), words, words)
def test_closing_and_opening_leaves_everything_of_others_as_it_was(before: dict[str, Any], reason: str, other: str):
    closed = _applied(before, nodes.build_cordon_patch(before, reason, "cordoned", "t1"))
    assert is_our_reason(nodes.describe_node_cordon(closed))
    assert nodes.build_cordon_patch(closed, reason, "cordoned", "t2") is None, "once is enough"
    again = _applied(closed, nodes.build_cordon_patch(closed, other, "draining", "t3"))
    assert again["metadata"]["annotations"]["assay.dev/since"] == "t1"
    opened = _applied(again, nodes.build_uncordon_patch(again))
    assert nodes.build_uncordon_patch(opened) is None
    assert nodes.describe_node_cordon(opened) == nodes.describe_node_cordon(before)
    assert _others(opened) == _others(before)


@given(words)
def test_a_taints_value_is_one_that_kubernetes_takes(reason: str):
    assert re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", nodes.format_taint_value(reason))
    assert len(nodes.format_taint_value(reason)) <= 63


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "x"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
    ],
)
def test_a_selector_selects_as_kubernetes_means_it(selector: dict[str, Any] | None, chosen: bool):
    assert matches_selector(selector, {"app": "web"}) is chosen


def test_quantities_are_compared_as_numbers():
    there = node("n1")
    there["status"]["allocatable"] = {"memory": "2Ti", "cpu": "96"}
    mine = pod("ours")
    mine["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi"}}
    fits, not_so = pod("fits"), pod("not-so")
    fits["spec"]["containers"][0]["resources"] = {"requests": {"memory": "2000Gi", "cpu": "500m"}}
    not_so["spec"]["containers"][0]["resources"] = {"requests": {"memory": "2500Gi"}}
    for one in (fits, not_so):
        one["metadata"]["namespace"] = "ml"
    assert list(find_waiting_pods(there, mine, [fits, not_so], "assay")) == [fits]


def test_a_templates_own_settings_stay_and_ours_come_on_top():
    spec = {
        "containers": [{"name": "check", "args": ["x"], "env": [{"name": "A", "value": "b"}]}, {"name": "beside"}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "affinity": {"podAffinity": {}},
        "restartPolicy": "Always",
    }
    template = {"template": {"metadata": {"labels": {"team": "fleet"}}, "spec": spec}}
    kept = copy.deepcopy(template)
    made = build_spare_pod(template, "n1", ["python3", "-"], 9.2, "t")
    assert template == kept, "the template is not changed"
    assert made["metadata"]["labels"] == {"team": "fleet", "assay.dev/spare": "true"}
    assert (made["spec"]["restartPolicy"], made["spec"]["activeDeadlineSeconds"]) == ("Never", 10)
    first = made["spec"]["containers"][0]
    assert first["env"][0] == {"name": "A", "value": "b"}
    assert "args" not in first
    assert set(made["spec"]["affinity"]) == {"podAffinity", "nodeAffinity"}
    assert not is_preemptible(made), "its priority is told by admission only"


def test_a_declared_load_is_the_image_of_the_pod_and_is_never_pulled():
    image = f"registry.example.org/site/assay-load@sha256:{64 * 'a'}"
    load = LoadDelivery(way="kubernetes", image=image, environment={"NCCL_DEBUG": "INFO"}, mounts=["/a:/b:ro"])
    template = {"template": {"spec": {"containers": [{"name": "check", "image": "python:3.12"}]}}}
    spec = build_spare_pod(template, "n1", ["python3", "-"], 9.0, "t", load)["spec"]
    first = spec["containers"][0]
    assert (first["image"], first["imagePullPolicy"]) == (image, "Never")
    assert {"name": "NCCL_DEBUG", "value": "INFO"} in first["env"]
    assert {"name": "assay-load-0", "mountPath": "/b", "readOnly": True} in first["volumeMounts"]
    assert {"name": "assay-load-0", "hostPath": {"path": "/a"}} in spec["volumes"]
    waiting = {"name": "check", "state": {"waiting": {"reason": "ErrImageNeverPull"}}}
    assert "is not on the node" in find_missing_image({"spec": spec, "status": {"containerStatuses": [waiting]}})
    assert find_missing_image({"spec": spec, "status": {}}) == ""


@pytest.mark.parametrize(("signals", "code"), [([], 3), (["TERM"], 143)])
def test_the_shell_of_the_pod_ends_as_its_command_or_at_once_when_it_is_told_to(
    signals: list[str], code: int, tmp_path: Path
):
    deaf = "trap '' TERM; echo begun; sleep 600" if signals else "cat; exit 3"
    given, said = tmp_path / "given", tmp_path / "said"
    given.write_text("input")
    environment = {**os.environ, "ASSAY_GIVEN": str(given), "ASSAY_SAID": str(said)}
    words = ["sh", "-c", RUN_SCRIPT, "sh", "sh", "-c", deaf]
    shell = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert shell.stdout is not None
    for name in signals:
        assert shell.stdout.readline() == "begun\n"
        shell.send_signal(getattr(signal, f"SIG{name}"))
    assert shell.wait(60) == code
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)


def test_the_documentation_names_every_key_and_every_right():
    page = (MANIFEST.parents[1] / "docs" / "kubernetes.md").read_text()
    named = vars(keys_of_ours).items()
    written = {value for name, value in named if name.isupper() and str(value).startswith(("assay.dev/", "Assay"))}
    assert [key for key in written if key not in page and key != "assay.dev/node"] == []
    assert [right for right in rights_of(MANIFEST).granted if f"`{right[2]}`" not in page] == []


def _applied(before: dict[str, Any], patch: dict[str, Any] | None) -> dict[str, Any]:
    assert patch is not None
    after = patched(STRATEGIC, before, patch)
    after["metadata"] = dict(after["metadata"])
    wrote(before, after, "assay")
    return after


def _others(there: dict[str, Any]) -> tuple[Any, ...]:
    return there["spec"].get("taints") or [], there["spec"].get("unschedulable"), there["metadata"]["annotations"]
