"""Whatever a reason holds, what is written on a Kubernetes node and into Events is one printable line."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.cordon import build_cordon_patch
from assay.adapters.scheduler import NodeNotice
from assay.model.text.safe_text import escape_line
from tests.adapters.kubernetes.test_kube_by_kubectl import kubectl
from tests.adapters.kubernetes.test_kube_notices import condition, events
from tests.support.kubernetes.kube_server import KubeFake

HOSTILE = "\x1b]0;owned\x07\x1b[2K\x9b1A\u202egnol\u2066\u2028\r\nFORGED n1 is healthy\x00"
NOTICE = NodeNotice(in_service=False, text=f"It left service: {HOSTILE}", move="a1")


def assert_one_printable_line(text: str) -> None:
    assert text == escape_line(text)
    assert "FORGED" in text


def test_a_reason_is_escaped_wherever_it_is_written(kube: KubeFake, adapter: KubernetesScheduler) -> None:
    adapter.cordon("n1", HOSTILE)
    there: Any = kube.get("nodes", "", "n1")
    told = next(one for one in there["status"]["conditions"] if one["type"] == "AssayCordoned")
    for text in (there["metadata"]["annotations"]["assay.dev/cordon"], told["message"]):
        assert_one_printable_line(text)
    kube.asked.clear()
    adapter.cordon("n1", HOSTILE)
    assert "patch nodes" not in kube.asked, "the same reason is there already"
    adapter.uncordon("n1")
    assert adapter.read_cordon_reason("n1") == ""


def test_a_notice_is_escaped_in_its_condition_and_its_event(kube: KubeFake, adapter: KubernetesScheduler) -> None:
    adapter.show_notices({"n1": NOTICE})
    assert_one_printable_line(condition(kube)["message"])
    ((_, _, note),) = events(kube)
    assert_one_printable_line(note)
    assert adapter.find_missing_notices({"n1": NOTICE}) == {}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl here (Debian: kubernetes-client)")
def test_kubectl_prints_no_control_characters_of_ours(kube: KubeFake, adapter: KubernetesScheduler) -> None:
    adapter.cordon("n1", HOSTILE)
    adapter.show_notices({"n1": NOTICE})
    shown = kubectl(kube, "describe", "node", "n1").stdout
    assert "FORGED" in shown
    assert [line for line in shown.splitlines() if line.strip().startswith("FORGED")] == []
    assert set(shown) & set("\x1b\x07\x9b\u202e\u2066\u2028\x00\r") == set()


@given(st.text() | st.just(HOSTILE))
def test_any_reason_is_one_printable_line_and_a_valid_taint(reason: str) -> None:
    node: Any = {"metadata": {"name": "n1", "resourceVersion": "1"}, "spec": {}}
    patch = build_cordon_patch(node, reason, "cordoned", "now")
    assert patch is not None
    written = patch["metadata"]["annotations"]["assay.dev/cordon"]
    assert written == escape_line(written)
    (taint,) = patch["spec"]["taints"]
    assert len(taint["value"]) <= 63
    assert taint["value"].isascii()
