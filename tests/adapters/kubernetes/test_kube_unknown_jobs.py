"""An answer that cannot be had, or only in part, is never an idle node; and no server that is too old is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import Response

from assay.adapters.kubernetes import client, jobs
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.kubernetes.client import OLDEST_VERSION, parse_server_version
from assay.adapters.scheduler import SchedulerGroups
from assay.model.errors import AssayError
from tests.support.kubernetes import kube_discovery
from tests.support.kubernetes.kube_make import pod
from tests.support.kubernetes.kube_server import Asked, KubeFake, Refusal

LIST = "list pods"


class Answer(Exception):
    """What the server answers to one request, in place of what it would have."""

    def __init__(self, response: Response) -> None:
        super().__init__("another answer")
        self.response = response


def refusing(code: int, reason: str) -> Callable[[], Exception]:
    return lambda: Refusal(code, reason, f"planted: {reason}")


def answering(body: str | bytes, **headers: str) -> Callable[[], Exception]:
    return lambda: Answer(Response(body, media_type="application/json", headers=headers or None))


FAILURES = {
    "403": (refusing(403, "Forbidden"), "RBAC does not let us `list` `pods`"),
    "500": (refusing(500, "InternalError"), "refused to list pods (500)"),
    "503": (refusing(503, "ServiceUnavailable"), "refused to list pods (503)"),
    "504": (refusing(504, "Timeout"), "refused to list pods (504)"),
    "cut short": (answering('{"kind": "PodList", "items": [{"meta'), "its answer is no JSON object"),
    "shorter than announced": (answering("{}", **{"Content-Length": "4000"}), "does not answer"),
    "a page of a proxy": (answering("<html>Sign in</html>"), "its answer is no JSON object"),
    "no list": (answering(json.dumps({"kind": "Status", "status": "Success"})), "is no list but a Status"),
    "nothing at all": (answering(""), "its answer is no JSON object"),
}


@pytest.fixture
def busy(kube: KubeFake, monkeypatch: pytest.MonkeyPatch) -> KubeFake:
    """A cluster of n1, n2, n3 with two pods on each, whose lists come in chunks of two."""
    monkeypatch.setattr(client, "LIST_CHUNK", 2)
    monkeypatch.setattr(client, "REQUEST_TIMEOUTS_S", (1.0, 1.0))
    for number in range(6):
        kube.put("pods", "ml", pod(f"llama-{number}", f"n{number // 2 + 1}"))
    plain = kube._do

    def do(asked: Asked) -> Response:
        try:
            return plain(asked)
        except Answer as answer:
            return answer.response

    kube._do = do  # type: ignore[method-assign]
    return kube


def fail(kube: KubeFake, made: Callable[[], Exception], on: Callable[[Asked], bool]) -> None:
    """Let each list of pods that `on` selects end so."""
    plain = kube._list

    def lists(asked: Asked) -> Response:
        if asked.resource == "pods" and on(asked):
            raise made()
        return plain(asked)

    kube._list = lists  # type: ignore[method-assign]


@pytest.mark.parametrize("chunk", ["first", "later"])
@pytest.mark.parametrize("name", FAILURES)
def test_a_list_that_fails_leaves_the_jobs_of_every_node_unknown(
    busy: KubeFake, adapter: KubernetesScheduler, name: str, chunk: str
):
    made, said = FAILURES[name]
    fail(busy, made, lambda asked: bool(asked.query.get("continue")) is (chunk == "later"))
    readings = SchedulerGroups({adapter: ["n1", "n2", "n3"]}, {}).read_statuses()
    assert dict(readings.statuses) == {}, "not one node counts as read, and none as empty"
    assert set(readings.errors) == {"n1", "n2", "n3"}
    assert all(said in reason for reason in readings.errors.values()), readings.errors
    assert "n1 and 2 more: cannot tell what is in use: " in next(readings.describe_errors())


@pytest.mark.parametrize("act", ["list_jobs", "drain"])
def test_one_node_whose_pods_cannot_be_listed(busy: KubeFake, adapter: KubernetesScheduler, act: str):
    fail(busy, FAILURES["500"][0], lambda _: True)
    with pytest.raises(AssayError, match=r"refused to list pods \(500\)"):
        _ = adapter.list_jobs("n1") if act == "list_jobs" else adapter.drain("n1", "fw", now=True)
    assert "create pods/eviction" not in busy.asked


def test_a_server_that_is_silent_in_the_middle_of_a_list(busy: KubeFake, adapter: KubernetesScheduler):
    def wait() -> Exception:
        time.sleep(2.5)
        return Refusal(504, "Timeout", "late")

    fail(busy, wait, lambda asked: bool(asked.query.get("continue")))
    with pytest.raises(AssayError, match="does not answer"):
        adapter.read_statuses(["n1", "n2", "n3"])


def test_a_list_that_expires_between_two_chunks_is_read_again_in_one_piece(
    busy: KubeFake, adapter: KubernetesScheduler
):
    def expire(asked: Asked) -> bool:
        return bool(asked.query.get("continue"))

    fail(busy, refusing(410, "Expired"), expire)
    statuses = adapter.read_statuses(["n1", "n2", "n3"])
    assert [len(statuses[name].jobs) for name in ("n1", "n2", "n3")] == [2, 2, 2]


def test_a_list_that_expires_and_then_fails_is_unknown(busy: KubeFake, adapter: KubernetesScheduler):
    answers: Iterator[Callable[[], Exception]] = iter([refusing(410, "Expired"), refusing(500, "InternalError")])
    began = []

    def on(asked: Asked) -> bool:
        began.append(asked)
        return len(began) > 1

    def make() -> Exception:
        return next(answers)()

    fail(busy, make, on)
    with pytest.raises(AssayError, match=r"refused to list pods \(500\)"):
        adapter.read_statuses(["n1", "n2", "n3"])


def test_nodes_that_the_list_of_nodes_lacks_are_not_idle_either(busy: KubeFake, adapter: KubernetesScheduler):
    assert set(adapter.read_statuses(["n1", "n9"])) == {"n1"}


def test_null_is_how_a_list_of_nothing_may_be_written(busy: KubeFake, adapter: KubernetesScheduler):
    empty = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": None})
    fail(busy, answering(empty), lambda _: True)
    assert adapter.list_jobs("n1") == ()


def told(version: str) -> dict[str, Any]:
    return {"gitVersion": version}


@pytest.mark.parametrize(("text", "policy"), [("v1.20.2", "v1beta1"), ("v1.21.14", "v1beta1"), ("v1.22.0", "v1")])
@pytest.mark.parametrize("suffix", ["", "-gke.100", "+k3s1", "-eks-abcdef"])
def test_the_version_says_which_policy_api_there_is(text: str, policy: str, suffix: str):
    assert parse_server_version(told(text + suffix), "here").policy_version == policy


@pytest.mark.parametrize("text", ["v1.19.16", "v1.2.0", "v0.9.1"])
def test_an_older_server_is_refused_in_plain_words(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch, text: str
):
    monkeypatch.setattr(kube_discovery, "VERSION", text)
    with pytest.raises(AssayError, match=r"is Kubernetes v.* and assay needs 1\.20 or newer") as refused:
        adapter.cordon("n1", "fw")
    assert "docs/kubernetes.md" in refused.value.fix
    assert kube.asked == [], "nothing else is asked of it"


@pytest.mark.parametrize("answer", [{}, {"gitVersion": "devel"}, [], "v1.31.0", {"major": "1", "minor": "31"}])
def test_a_server_that_tells_no_version_is_not_guessed_about(answer: Any):
    with pytest.raises(AssayError, match="does not say which version it is"):
        parse_server_version(answer, "here")


def test_an_upgraded_cluster_is_noticed(kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "VERSION_AGE_S", 0.0)
    kube.put("pods", "ml", pod("llama-0", "n1"))
    monkeypatch.setattr(kube_discovery, "VERSION", "v1.20.2")
    adapter.list_jobs("n1")
    assert kube.versions[-1] == "v1beta1"
    monkeypatch.setattr(kube_discovery, "VERSION", "v1.31.0")
    adapter.list_jobs("n1")
    assert kube.versions[-1] == "v1"


@pytest.mark.parametrize("version", ["v1.20.2", "v1.31.0"])
def test_evictions_and_budgets_speak_the_servers_policy_version(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch, version: str
):
    monkeypatch.setattr(kube_discovery, "VERSION", version)
    kube.put("pods", "ml", pod("llama-0", "n1"))
    adapter.drain("n1", "fw", now=True)
    assert adapter.list_jobs("n1") == ()
    assert set(kube.versions) == {parse_server_version(told(version), "").policy_version}


def test_a_server_that_asks_for_time_gets_it(
    kube: KubeFake, adapter: KubernetesScheduler, monkeypatch: pytest.MonkeyPatch
):
    waits: list[float] = []
    monkeypatch.setattr(jobs, "time", SimpleNamespace(sleep=waits.append, monotonic=time.monotonic))
    adapter.patience_s = 60.0
    kube.put("pods", "ml", pod("llama-0", "n1"))
    busy = iter([True])

    def evict(asked: Asked) -> None:
        if asked.sub == "eviction" and next(busy, False):
            raise Refusal(429, "TooManyRequests", "still being processed", retry_after_s=7)

    kube.before = evict
    adapter.drain("n1", "fw", now=True)
    assert waits[:1] == [7.0]


def test_the_oldest_version_is_the_one_that_the_docs_name():
    from tests.support.kubernetes.kube_rights import MANIFEST

    oldest = ".".join(map(str, OLDEST_VERSION))
    docs = (MANIFEST.parents[1] / "docs" / "kubernetes.md").read_text()
    assert f"**Kubernetes {oldest} or newer**" in docs
