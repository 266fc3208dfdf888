"""A Kubernetes API server for tests: real HTTPS, bearer tokens, RBAC; the rest of the control plane works at each look.

What it says passes the official client's models (`kube_models`), and a body that they do not have is refused.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import trustme
import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.kubernetes.kube_budget import NotNow, admit, count
from tests.support.kubernetes.kube_discovery import discovered, policy_version
from tests.support.kubernetes.kube_kubelet import Kubelets
from tests.support.kubernetes.kube_models import KINDS, Unfaithful, judged, kind_of
from tests.support.kubernetes.kube_patch import BadPatch, patched
from tests.support.kubernetes.kube_rights import Rights
from tests.support.kubernetes.kube_scheduler import end, place
from tests.support.kubernetes.kube_select import BadSelector, by_fields, by_labels, supported
from tests.support.kubernetes.kube_store import Store, Thing, wrote

GROUPS = {
    "daemonsets": "apps",
    "events": "events.k8s.io",
    "poddisruptionbudgets": "policy",
    "priorityclasses": "scheduling.k8s.io",
}
CONTEXT = "hall"
SCHEME = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Refusal(Exception):
    """An answer that is a Status: HTTP code, reason, message, the causes of a 429, and when to ask again."""

    def __init__(
        self, code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None, retry_after_s: int = 0
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.causes = code, reason, message, causes or []
        self.retry_after_s = retry_after_s


class Asked:
    """One request, read: what RBAC calls it, and whose it is."""

    def __init__(self, request: Request, body: bytes, user: Rights) -> None:
        self.request, self.user, self.query = request, user, request.query_params
        parts = request.url.path.strip("/").split("/")
        self.group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        self.version = parts[1] if parts[0] == "api" else parts[2]
        self.namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            self.namespace, rest = rest[1], rest[2:]
        self.resource, self.name, self.sub = (*rest, "", "")[:3] if len(rest) < 3 else rest[:3]
        self.verb = {"GET": "get" if self.name else "list", "POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(
            request.method, request.method
        )
        self.body = json.loads(body) if body else None
        self.named = self.resource + (f"/{self.sub}" if self.sub else "")

    @property
    def manager(self) -> str:
        return self.query.get("fieldManager") or self.request.headers.get("user-agent", "unknown").split("/")[0]


class KubeFake:
    """The server. `asked` is every request as `verb resource`; `before` is called with each before it is answered.

    `versions` are those of the group `policy` in which it was asked for budgets and evictions.
    """

    def __init__(self, folder: Path, users: dict[str, Rights]) -> None:
        self.store, self.users, self.folder = Store(), users, folder
        self.kubelets = Kubelets(self.store, folder, "assay")
        self.replicas: dict[str, int] = {}
        self.asked: list[str] = []
        self.versions: list[str] = []
        self.counts_budgets = True
        self.before: Callable[[Asked], None] = lambda _: None
        self._lock = threading.RLock()
        self._authority = trustme.CA()
        self._port = 0

    def start(self) -> None:
        """Listen on loopback, on the port of last time if there was one."""
        certificate = self._authority.issue_cert("127.0.0.1")
        files = [self.folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
        self._authority.cert_pem.write_to_path(str(files[0]))
        certificate.cert_chain_pems[0].write_to_path(str(files[1]))
        certificate.private_key_pem.write_to_path(str(files[2]))
        app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "POST", "PATCH", "PUT", "DELETE"])])
        config = uvicorn.Config(app, ssl_certfile=files[1], ssl_keyfile=files[2], log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", self._port))
        self._port = listening.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop listening; the store stays."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    def cut(self) -> None:
        """Go away in the middle of a request: every connection breaks."""
        self._server.should_exit = self._server.force_exit = True
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def kubeconfig(self, token: str = "assay-token", **cluster: Any) -> Path:
        """Write a kubeconfig for the user of a token; `cluster` changes what it says of the cluster."""
        told = {"server": self.address, "certificate-authority": str(self.folder / "ca.pem")} | cluster
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": {k: v for k, v in told.items() if v is not None}}],
            "users": [{"name": "we", "user": {"token": token}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": "we"}}],
            "current-context": CONTEXT,
        }
        path = self.folder / f"kubeconfig-{token}-{len(cluster)}"
        path.write_text(yaml.safe_dump(content))
        return path

    def settle(self) -> None:
        """Let scheduler, kubelets, disruption controller and garbage collector do what is to be done."""
        with self._lock:
            place(self.store)
            self.kubelets.work()
            place(self.store)
            self.kubelets.work()
            if self.counts_budgets:
                count(self.store, self.replicas)
            self._collect()

    def put(self, resource: str, namespace: str, body: Thing) -> Thing:
        """Keep an object as if it had always been there."""
        with self._lock:
            return self.store.add(resource, namespace, body)

    def get(self, resource: str, namespace: str, name: str) -> Thing | None:
        with self._lock:
            self.settle()
            return self.store.find(resource, namespace, name)

    def edit(self, resource: str, namespace: str, name: str, edit: Callable[[Thing], object]) -> None:
        """Change an object as somebody else would."""
        with self._lock:
            thing = self.store.find(resource, namespace, name)
            assert thing is not None
            self.store.change(resource, thing, edit)
            self.settle()

    def _collect(self) -> None:
        alive = {thing["metadata"]["uid"] for things in self.store.things.values() for thing in things.values()}
        for thing in list(self.store.all("configmaps")):
            owners = thing["metadata"].get("ownerReferences") or []
            if owners and not any(owner["uid"] in alive for owner in owners):
                self.store.remove("configmaps", thing)

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        try:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            user = self.users.get(token)
            if user is None or scheme.lower() != "bearer":
                raise Refusal(401, "Unauthorized", "Unauthorized")
            if (told := discovered(request.url.path, GROUPS)) is not None:
                return JSONResponse(told)
            asked = Asked(request, body, user)
            self.before(asked)
            with self._lock:
                return self._do(asked)
        except Refusal as refusal:
            return _status(refusal)

    def _do(self, asked: Asked) -> Response:
        self.asked.append(f"{asked.verb} {asked.named}")
        if asked.group == "policy":
            self.versions.append(asked.version)
        served = policy_version() if asked.group == "policy" else "v1"
        if GROUPS.get(asked.resource, "") != asked.group or asked.resource not in KINDS or asked.version != served:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if not asked.user.may(asked.verb, asked.group, asked.named, asked.namespace):
            where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
            said = f'cannot {asked.verb} resource "{asked.named}" in API group "{asked.group}" {where}'
            what = f'{asked.resource} "{asked.name}"' if asked.name else asked.resource
            raise Refusal(403, "Forbidden", f'{what} is forbidden: User "{asked.user.user}" {said}')
        self.settle()
        try:
            answer = getattr(self, f"_{asked.verb}")(asked)
        except BadSelector as wrong:
            raise Refusal(400, "BadRequest", str(wrong)) from None
        except (Unfaithful, BadPatch) as wrong:
            raise Refusal(400, "BadRequest", f"strict decoding error: {wrong}") from None
        self.settle()
        return answer if isinstance(answer, Response) else _object(asked, answer)

    def _list(self, asked: Asked) -> Response:
        fields = supported(asked.resource, asked.query.get("fieldSelector", ""))
        labels = asked.query.get("labelSelector", "")
        things = [
            thing
            for thing in self.store.all(asked.resource, asked.namespace)
            if by_fields(fields, thing) and by_labels(labels, thing)
        ]
        at_hand = asked.query.get("resourceVersion") == "0"  # the watch cache knows no chunks
        try:
            limit = 0 if at_hand else int(asked.query.get("limit", "0"))
            items, meta = self.store.chunk(things, limit, asked.query.get("continue", ""))
        except LookupError as old:
            raise Refusal(410, "Expired", str(old)) from None
        kind = KINDS[asked.resource]
        envelope = {"apiVersion": _version(asked), "kind": f"{kind_of(asked.resource)}List", "metadata": meta}
        judged(f"{kind}List", {**envelope, "items": []})
        return JSONResponse({**envelope, "items": items})

    def _get(self, asked: Asked) -> Any:
        thing = self._found(asked)
        if asked.sub == "log":
            return Response(self.kubelets.log(thing), media_type="text/plain")
        return thing

    def _create(self, asked: Asked) -> Any:
        if asked.sub == "eviction":
            return self._evict(asked)
        judged(KINDS[asked.resource], asked.body)
        if asked.body.get("kind") != kind_of(asked.resource):
            raise Refusal(400, "BadRequest", f"the object provided is unrecognized: {asked.body.get('kind')}")
        name = asked.body["metadata"]["name"]
        if self.store.find(asked.resource, asked.namespace, name):
            raise Refusal(409, "AlreadyExists", f'{asked.resource} "{name}" already exists')
        if asked.resource == "events" and asked.namespace != asked.body["regarding"].get("namespace", "kube-system"):
            wrong = 'involvedObject.namespace: Invalid value: "": does not match event.namespace'
            raise Refusal(422, "Invalid", f'Event "{name}" is invalid: {wrong}')
        body = self._admitted(asked.body) if asked.resource == "pods" else asked.body
        return _object(asked, self.store.add(asked.resource, asked.namespace, body), HTTPStatus.CREATED)

    def _admitted(self, pod: Thing) -> Thing:
        """Return a pod with what admission fills in. Raises Refusal for a priority class that is not there."""
        spec = {"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30, **pod["spec"]}
        name = spec.get("priorityClassName")
        known = self.store.find("priorityclasses", "", name) if name else None
        if name and known is None:
            raise Refusal(403, "Forbidden", f'pods "x" is forbidden: no PriorityClass with name {name} was found')
        chosen = known or {"value": 0}
        spec |= {
            "priority": chosen["value"],
            "preemptionPolicy": chosen.get("preemptionPolicy", "PreemptLowerPriority"),
        }
        for container in spec["containers"]:
            resources = container.get("resources") or {}
            if "limits" in resources:
                container["resources"] = {
                    **resources,
                    "requests": {**resources["limits"], **resources.get("requests", {})},
                }
        return {**pod, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}

    def _patch(self, asked: Asked) -> Thing:
        old = self._found(asked)
        told = (asked.body.get("metadata") or {}) if isinstance(asked.body, dict) else {}
        if told.get("resourceVersion", old["metadata"]["resourceVersion"]) != old["metadata"]["resourceVersion"]:
            changed = "the object has been modified; please apply your changes to the latest version and try again"
            said = f'Operation cannot be fulfilled on {asked.resource} "{asked.name}": {changed}'
            raise Refusal(409, "Conflict", said)
        new = patched(asked.request.headers["content-type"], old, asked.body)
        if asked.sub == "status":
            new = {**old, "metadata": dict(old["metadata"]), "status": new["status"]}
        elif "status" in old:
            new = {**new, "status": old["status"]}
        judged(KINDS[asked.resource], new)
        wrote(old, new, asked.manager)
        return self.store.keep(asked.resource, new)

    def _delete(self, asked: Asked) -> Thing:
        thing = self._found(asked)
        judged("V1DeleteOptions", asked.body or {})
        self._precondition(asked, thing, asked.body or {})
        if asked.resource != "pods":
            self.store.remove(asked.resource, thing)
            return thing
        return self._told_to_end(thing, asked.body or {})

    def _evict(self, asked: Asked) -> Response:
        judged("V1Eviction", asked.body)
        group, _, version = asked.body["apiVersion"].rpartition("/")
        self.versions.append(version)
        if (group, version) != ("policy", policy_version()):
            unknown = f'no kind "Eviction" is registered for version "{group}/{version}" in scheme "{SCHEME}"'
            told = f'Eviction in version "{version}" cannot be handled as a Eviction: {unknown}'
            raise Refusal(400, "BadRequest", told)
        pod = self._found(asked)
        options = asked.body.get("deleteOptions") or {}
        self._precondition(asked, pod, options)
        try:
            admit(self.store, pod)
        except NotNow as refused:
            causes = [{"reason": "DisruptionBudget", "message": refused.cause}] if refused.cause else []
            reason = "TooManyRequests" if refused.code == 429 else ""
            raise Refusal(refused.code, reason, refused.message, causes) from None
        self._told_to_end(pod, options)
        return JSONResponse(judged("V1Status", SUCCESS), HTTPStatus.CREATED)

    def _told_to_end(self, pod: Thing, options: dict[str, Any]) -> Thing:
        grace = options.get("gracePeriodSeconds", pod["spec"]["terminationGracePeriodSeconds"])
        if not pod["spec"].get("nodeName"):
            self.store.remove("pods", pod)
            return pod
        return self.store.change("pods", pod, lambda one: end(one, grace))

    def _precondition(self, asked: Asked, thing: Thing, options: dict[str, Any]) -> None:
        uid = (options.get("preconditions") or {}).get("uid", thing["metadata"]["uid"])
        if uid != thing["metadata"]["uid"]:
            said = f"the UID in the precondition ({uid}) does not match the UID in record ({thing['metadata']['uid']})"
            what = f'Operation cannot be fulfilled on {kind_of(asked.resource)} "{asked.name}": {said}'
            raise Refusal(409, "Conflict", f"{what}. The object might have been deleted and then recreated")

    def _found(self, asked: Asked) -> Thing:
        thing = self.store.find(asked.resource, asked.namespace, asked.name)
        if thing is None:
            raise Refusal(404, "NotFound", f'{asked.resource} "{asked.name}" not found')
        return thing


def _version(asked: Asked) -> str:
    return f"{asked.group}/{asked.version}" if asked.group else "v1"


def _object(asked: Asked, thing: Thing, code: int = HTTPStatus.OK) -> Response:
    answer = {"apiVersion": _version(asked), "kind": kind_of(asked.resource), **thing}
    return JSONResponse(judged(KINDS[asked.resource], answer), code)


def _status(refusal: Refusal) -> Response:
    told: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    told |= {"message": refusal.message, "code": refusal.code}
    if refusal.reason:
        told["reason"] = refusal.reason
    headers = {"Retry-After": str(refusal.retry_after_s)} if refusal.retry_after_s else None
    if refusal.causes or refusal.retry_after_s:
        asked = {"retryAfterSeconds": refusal.retry_after_s} if refusal.retry_after_s else {}
        told["details"] = {**({"causes": refusal.causes} if refusal.causes else {}), **asked}
    return JSONResponse(json.loads(json.dumps(judged("V1Status", told))), refusal.code, headers)
