"""The exchanges to which the fake is held: what assay asks of an API server, and what a real one answered.

`play_exchanges` has each of them with any server. `recorded_exchanges.json` is what the server of real_cluster.py
answered: the HTTP status, and of the body what the adapter reads. Record it again with
`ASSAY_RECORD_EXCHANGES=1 .venv/bin/pytest -n0 -m slow tests/adapters/kubernetes/test_kube_exchanges.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.support.kubernetes.kube_rights import MANIFEST, documents_of

RECORDED = Path(__file__).with_name("recorded_exchanges.json")
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
N1, PODS, ML, OURS = "/api/v1/nodes/n1", "/api/v1/pods", "/api/v1/namespaces/ml/pods", "/api/v1/namespaces/assay/pods"
STATUS = ("kind", "status", "reason", "code", "message", "details.causes", "details.retryAfterSeconds")
CLOSED = ("spec.unschedulable", "lasting taints", "metadata.annotations", "metadata.labels", "unschedulable by")
UNTOLD = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
]
Answer = tuple[int, dict[str, Any], Mapping[str, str]]


class Server(Protocol):
    """A cluster with the nodes n1 and n2, the manifest, and the namespace `ml`."""

    def ask(self, method: str, path: str, body: Any = None, *, user: str = "assay", **headers: str) -> Answer:
        """Send a request as the user `assay`, `admin` or `nobody`."""

    def run_pod(self, name: str, on: str, owner: str) -> None:
        """Let a customer's pod run in `ml`, and be ready."""

    def protect(self, name: str, owner: str, at_least: int, *, counted: bool = True) -> None:
        """Create a PodDisruptionBudget in `ml`. Unless it is to be `counted`, the disruption controller is away."""

    def compact(self) -> None:
        """Forget all but the newest revision of every object, after one more change."""


class Recorder:
    """Has exchanges with a server, and notes of each the request and what is shown of the answer."""

    def __init__(self, server: Server) -> None:
        self.server, self.notes = server, dict[str, dict[str, Any]]()

    def exchange(
        self, name: str, method: str, path: str, body: Any = None, *, shows: tuple[str, ...] = STATUS, **more: str
    ) -> dict[str, Any]:
        """Have one exchange, and return the body of the answer."""
        status, told, headers = self.server.ask(method, path, body, **more)
        shown = {part: _plain(value) for part in shows if (value := _find(told, part)) not in (None, "", {}, [])}
        if "Retry-After" in headers:
            shown["Retry-After"] = headers["Retry-After"]
        asked = _plain({"method": method, "path": path, "body": body, "user": more.get("user", "assay")})
        self.notes[name] = {"asked": asked, "answered": {"http": status, **shown}}
        return told


def play_exchanges(server: Server) -> dict[str, dict[str, Any]]:
    """Return the exchanges with a server by name."""
    recorder = Recorder(server)
    told = recorder.exchange("version", "GET", "/version/", shows=("major", "minor", "gitVersion"))
    policy = "policy/v1" if int(told["minor"]) >= 22 else "policy/v1beta1"
    _play_nodes(recorder)
    _play_lists(recorder)
    _play_evictions(recorder, policy)
    _play_spare_pod(recorder)
    return recorder.notes


def _play_nodes(recorder: Recorder) -> None:
    exchange = recorder.exchange
    node = exchange("an open node", "GET", N1, shows=("kind", *CLOSED))
    exchange("an unknown node", "GET", "/api/v1/nodes/n9")
    version = node["metadata"]["resourceVersion"]
    taints = node["spec"]["taints"]
    ours = {"key": "assay.dev/cordon", "value": "fw", "effect": "NoSchedule"}
    marks = {"annotations": {"assay.dev/cordon": "assay: fw"}, "labels": {"assay.dev/state": "cordoned"}}
    closed = {
        "metadata": {"resourceVersion": version, **marks},
        "spec": {"taints": [*taints, ours], "unschedulable": True},
    }
    manager = f"{N1}?fieldManager=assay"
    exchange("cordon", "PATCH", manager, closed, shows=CLOSED, **STRATEGIC)
    exchange("a write with an old resourceVersion", "PATCH", manager, closed, **STRATEGIC)
    condition = {"type": "AssayCordoned", "status": "True", "reason": "Cordoned", "message": "assay: fw"}
    told = {"status": {"conditions": [condition]}}
    exchange("a condition", "PATCH", f"{N1}/status?fieldManager=assay", told, shows=("our condition",), **STRATEGIC)
    by_status = {"spec": {"unschedulable": False}, "status": {"conditions": [condition]}}
    exchange("a spec through the status", "PATCH", f"{N1}/status", by_status, shows=CLOSED[:2], **STRATEGIC)
    kubectl = f"{N1}?fieldManager=kubectl"
    by_kubectl = {"spec": {"unschedulable": None}}
    exchange("kubectl uncordon", "PATCH", kubectl, by_kubectl, shows=CLOSED, user="admin", **STRATEGIC)
    theirs = {"spec": {"unschedulable": True}, "metadata": {"annotations": {"assay.dev/verify-undrain": "fans"}}}
    shows = (*CLOSED, "verify-undrain by")
    exchange("kubectl cordon", "PATCH", kubectl, theirs, shows=shows, user="admin", **STRATEGIC)
    opened = {
        "metadata": {
            "annotations": {"assay.dev/cordon": None, "assay.dev/verify-undrain": None},
            "labels": {"assay.dev/state": None},
        },
        "spec": {"taints": taints, "unschedulable": None},
    }
    exchange("uncordon", "PATCH", manager, opened, shows=CLOSED, **STRATEGIC)
    exchange("an unknown token", "GET", N1, user="nobody")
    exchange("a right that is lacking", "GET", "/api/v1/configmaps")
    exchange("a right that is lacking in a namespace", "DELETE", f"{ML}/x")


def _play_lists(recorder: Recorder) -> None:
    exchange = recorder.exchange
    for number in range(5):
        recorder.server.run_pod(f"llama-{number}", f"n{number % 2 + 1}", "train")
    shows = ("kind", "apiVersion", "items[].metadata.name", "metadata.remainingItemCount", "has more")
    page = exchange("the first chunk", "GET", f"{PODS}?limit=2", shows=shows)
    more = page["metadata"]["continue"]
    page = exchange("the next chunk", "GET", f"{PODS}?limit=2&continue={more}", shows=shows)
    last = page["metadata"]["continue"]
    exchange("the last chunk", "GET", f"{PODS}?limit=2&continue={last}", shows=shows)
    fields = "fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase!%3DSucceeded"
    exchange("the pods of a node", "GET", f"{PODS}?{fields}", shows=shows)
    exchange("the pods of no node", "GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn9", shows=(*shows, "has items"))
    cached = ("kind", "names in any order", "has more")
    exchange("from the cache, without chunks", "GET", f"{PODS}?limit=2&resourceVersion=0", shows=cached)
    exchange("a field that nothing is selected by", "GET", f"{PODS}?fieldSelector=spec.nodName%3Dn1")
    recorder.server.compact()
    exchange("a chunk of a list that is forgotten", "GET", f"{PODS}?limit=2&continue={more}")


def _play_evictions(recorder: Recorder, policy: str) -> None:
    exchange, server = recorder.exchange, recorder.server

    def evict(name: str, pod: str, version: str = policy, uid: str = "") -> None:
        options = {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {}
        body = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": pod, "namespace": "ml"}, **options}
        exchange(name, "POST", f"{ML}/{pod}/eviction", body)

    server.run_pod("traefik-0", "n1", "traefik")
    server.protect("edge", "traefik", 1)
    allowed = ("kind", "items[].metadata.name", "items[].status.disruptionsAllowed", "items[].status.desiredHealthy")
    exchange("the budgets", "GET", f"/apis/{policy}/poddisruptionbudgets?resourceVersion=0", shows=allowed)
    exchange("the budgets in a version that is not served", "GET", "/apis/policy/v7/poddisruptionbudgets", user="admin")
    evict("an eviction that a budget forbids", "traefik-0")
    evict("an eviction in a version that is not served", "llama-0", "policy/v7")
    evict("an eviction of another pod of the name", "llama-0", uid="2fdb3d0a-0000-4000-8000-000000000000")
    evict("an eviction of no pod", "llama-9")
    evict("an eviction", "llama-0")
    server.protect("edge-too", "traefik", 1)
    evict("an eviction that two budgets are asked about", "traefik-0")
    server.protect("fresh", "train", 0, counted=False)
    evict("an eviction before the budget is counted", "llama-1")


def _play_spare_pod(recorder: Recorder) -> None:
    exchange = recorder.exchange
    template = next(one for one in documents_of(MANIFEST) if one["kind"] == "PodTemplate")
    path = "/api/v1/namespaces/assay/podtemplates/assay-spare"
    exchange("the template", "GET", path, shows=("kind", "template.spec.priorityClassName"))
    exchange("no template", "GET", f"{path}-9")
    spec = {
        **template["template"]["spec"],
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/hostname": "none"},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "assay-spare-n1"}, "spec": spec}
    admitted = ("kind", "spec.priority", "spec.preemptionPolicy", "status.phase", "spec.schedulerName")
    exchange("a pod of ours", "POST", OURS, pod, shows=admitted)
    exchange("a pod that is there", "POST", OURS, pod)
    unknown = {**pod, "metadata": {"name": "x"}, "spec": {**spec, "priorityClassName": "none"}}
    exchange("a pod of a class that there is not", "POST", OURS, unknown)
    options = {"preconditions": {"uid": "2fdb3d0a-0000-4000-8000-000000000000"}}
    exchange("a deletion of another pod of the name", "DELETE", f"{OURS}/assay-spare-n1", options)
    exchange("a deletion", "DELETE", f"{OURS}/assay-spare-n1", {"gracePeriodSeconds": 1}, shows=("kind",))
    exchange("a deletion of no pod", "DELETE", f"{OURS}/assay-spare-n1", {"gracePeriodSeconds": 1})


def _find(told: dict[str, Any], part: str) -> Any:
    """Return a part of a body: at a dotted path, where `[]` stands for each item, or one of a few questions."""
    if part.endswith(" by"):
        key = {"unschedulable by": ("f:spec", "f:unschedulable")}.get(part)
        return _writer(told, key or ("f:metadata", "f:annotations", f"f:assay.dev/{part.removesuffix(' by')}"))
    if part == "has more":
        return bool(told.get("metadata", {}).get("continue"))
    if part == "lasting taints":  # the node controller writes its own some time later
        keys = [taint["key"] for taint in told.get("spec", {}).get("taints") or []]
        return [key for key in keys if not key.startswith("node.kubernetes.io/")]
    if part == "names in any order":
        return sorted(one["metadata"]["name"] for one in told.get("items", []))
    if part == "has items":
        return "items" in told
    if part == "our condition":
        conditions = told.get("status", {}).get("conditions", [])
        mine = [one for one in conditions if one["type"] == "AssayCordoned"]
        return [{key: one[key] for key in ("type", "status", "reason", "message")} for one in mine]
    found: Any = told
    head, _, rest = part.partition("[]")
    for key in head.split("."):
        found = (found or {}).get(key) if isinstance(found, dict) else None
    return [_find(one, rest.lstrip(".")) for one in found or []] if "[]" in part else found


def _writer(told: dict[str, Any], path: tuple[str, ...]) -> str:
    for entry in told.get("metadata", {}).get("managedFields") or []:
        fields: Any = entry.get("fieldsV1") or {}
        for key in path:
            fields = fields.get(key) if isinstance(fields, dict) else None
        if fields is not None:
            return str(entry["manager"])
    return ""


def _plain(value: Any) -> Any:
    """Return a value without what differs from day to day."""
    text = json.dumps(value)
    text = re.sub(r"continue=[^&\"]+", "continue=TOKEN", text)
    for pattern, word in UNTOLD:
        text = pattern.sub(word, text)
    plain = json.loads(text)
    if isinstance(plain, dict) and "metadata" in (plain.get("body") or {}):
        plain["body"]["metadata"].pop("resourceVersion", None)
    return plain
