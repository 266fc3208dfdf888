"""The way to an API server: by kubeconfig or as a pod of the cluster, over TLS that is verified.

What an API server's refusal means, in words.

One API server. Answers are read as JSON: the client's models refuse what a newer or older server says otherwise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.errors import AssayError
from assay.model.secret_redaction import redact, register_secret
from assay.model.specs.node_settings import KubernetesClusterSettings

if TYPE_CHECKING:
    from kubernetes.client import Configuration

IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
DEFAULT_KUBECONFIG = "~/.kube/config"
READ_RETRIES = 2


def load_client_configuration(settings: KubernetesClusterSettings) -> Configuration:
    """Return the client's configuration. Raises Trouble where it cannot be had, or where TLS would not be verified."""
    from kubernetes import client
    from urllib3 import Retry

    told = client.Configuration()
    _load(settings, told)
    if not told.verify_ssl:
        fix = "give the cluster's certificate-authority-data in place of insecure-skip-tls-verify"
        raise AssayError(
            "the kubeconfig switches the check of the API server's certificate off", where=told.host, fix=fix
        )
    if not told.host.startswith("https://"):
        raise AssayError("the API server is not reached over TLS", where=told.host, fix="give an https:// address")
    for token in told.api_key.values():
        register_secret(str(token).rpartition(" ")[2])
    told.retries = Retry(
        total=READ_RETRIES,
        connect=0,
        redirect=0,
        status_forcelist=(429, 503),  # the server asks for patience; an eviction's 429 is an answer, and no GET
        allowed_methods={"GET"},
        raise_on_status=False,
    )
    return told


def read_kubeconfig_stamp(settings: KubernetesClusterSettings) -> tuple[Any, ...]:
    """Return what changes when a kubeconfig is replaced, so that its new credentials are read."""
    return os.environ.get(IN_CLUSTER_VARIABLE), *(_read_mtime(path) for path in _files(settings))


def _files(settings: KubernetesClusterSettings) -> list[Path]:
    told = settings.kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    return [Path(name).expanduser() for name in told.split(os.pathsep) if name]


def _read_mtime(path: Path) -> tuple[str, int]:
    try:
        return str(path), path.stat().st_mtime_ns
    except OSError:
        return str(path), 0


def _load(settings: KubernetesClusterSettings, told: Configuration) -> None:
    from kubernetes import config

    if not settings.kubeconfig and not os.environ.get("KUBECONFIG") and os.environ.get(IN_CLUSTER_VARIABLE):
        return _load_in_cluster(told)
    files = [path for path in _files(settings) if path.is_file()]
    where = os.pathsep.join(map(str, files or _files(settings)))
    if not files:
        fix = "set `kubernetes: {kubeconfig: PATH}` in the inventory, or KUBECONFIG"
        raise AssayError("there is no kubeconfig", where=where, fix=fix)
    try:
        load: Callable[..., None] = config.load_kube_config
        load(os.pathsep.join(map(str, files)), settings.context or None, told, persist_config=False)
    except Exception as error:  # the library lets through what its YAML reader and its credential plugins raise
        fix = "`kubectl config get-contexts` lists what it holds"
        raise AssayError(f"the kubeconfig cannot be used: {_first_line(error)}", where=where, fix=fix) from None


def _load_in_cluster(told: Configuration) -> None:
    from kubernetes import config

    try:
        load: Callable[..., None] = config.load_incluster_config
        load(client_configuration=told)
    except (config.ConfigException, OSError) as error:
        fix = "give the pod a service account whose token is mounted (deploy/kubernetes.yaml)"
        raise AssayError(f"this pod has no credentials: {_first_line(error)}", fix=fix) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__


if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_MESSAGE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What was asked for: a verb and a resource as RBAC calls them, and the object's name and namespace, if any."""

    verb: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.resource}{named}{f' in {self.namespace}' if self.namespace else ''}"


class ApiRefusal(AssayError):
    """An API server that said no. `status` is HTTP's."""

    def __init__(self, what: str, *, where: str, fix: str, status: int) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


def make_api_refusal(question: ApiRequest, server: str, status: int, body: Any) -> ApiRefusal:
    """Return the refusal of a question by a `server`, whose answer had this HTTP `status` and `body`."""
    told = _parse_status(body)
    said = redact(str(told.get("message") or "no reason given"))[:MAX_MESSAGE_LENGTH]
    what, fix = _explain(question, status, said)
    return ApiRefusal(what, where=server, fix=fix, status=status)


def make_no_answer_error(server: str, error: Exception) -> AssayError:
    """Return what a server that gives no answer comes to."""
    reason = error.__cause__ or getattr(error, "reason", None) or error
    said = redact(str(reason)).strip().rpartition("\n")[2][:MAX_MESSAGE_LENGTH]
    if "certificate" in said.lower():
        fix = "the kubeconfig's certificate-authority-data must be of this cluster"
        return AssayError(f"the API server's certificate is not trusted: {said}", where=server, fix=fix)
    return AssayError(
        f"the API server does not answer: {said}", where=server, fix="`kubectl get --raw /readyz` asks it too"
    )


def make_invalid_body_error(question: ApiRequest, server: str, error: ValidationError) -> AssayError:
    """Return what a body comes to that the client does not let out."""
    fields = ", ".join(".".join(map(str, one["loc"][1:])) for one in error.errors(include_input=False))
    fix = "leave it out, or use an assay whose client is as new as the cluster"
    return AssayError(f"the client that should {question} takes no such body: {fields}", where=server, fix=fix)


def _explain(question: ApiRequest, status: int, said: str) -> tuple[str, str]:
    if status == 401:
        return "the API server does not know us (401)", "the kubeconfig's credentials are wrong or have expired"
    if status == 403:
        scope = f" in the namespace {question.namespace}" if question.namespace else ""
        lacks = f"RBAC does not let us `{question.verb}` `{question.resource}`{scope}"
        return f"{lacks}: {said}", "`kubectl apply -f deploy/kubernetes.yaml` grants it"
    if status == 404 and question.resource.startswith("nodes"):
        fix = "a node has one name, in the inventory and in the cluster: see `kubectl get nodes`"
        return f"the cluster does not know the node {question.name}", fix
    return f"the API server refused to {question} ({status}): {said}", ""


def _parse_status(body: Any) -> dict[str, Any]:
    """Return the Status object of an answer's body, empty for a body that is none."""
    try:
        told = json.loads(body)
    except (TypeError, ValueError):
        return {"message": str(body).strip().partition("\n")[0]} if body else {}
    return told if isinstance(told, dict) else {}


REQUEST_TIMEOUTS_S = (5.0, 30.0)
"""How long a connection may take, and then the silence before or within an answer."""

LIST_CHUNK = 500
HTTP_GONE = 410
HTTP_UNAUTHORIZED = 401
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
KubernetesObject = dict[str, Any]


class KubernetesApi:
    """The client's APIs, and the way to ask them."""

    def __init__(self, settings: KubernetesClusterSettings) -> None:
        from kubernetes import client

        told = load_client_configuration(settings)
        self.server = str(told.host)
        channel = client.ApiClient(told)
        self.core, self.policy = client.CoreV1Api(channel), client.PolicyV1Api(channel)

    def request(self, question: ApiRequest, call: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Return the JSON that a call answers. Raises Refused, or Trouble where there is no answer."""
        return json.loads(self.request_bytes(question, call, *given, **options))

    def request_bytes(self, question: ApiRequest, call: Callable[..., Any], *given: Any, **options: Any) -> bytes:
        """Return what a call answers, as it came."""
        from kubernetes.client import ApiException
        from pydantic import ValidationError
        from urllib3.exceptions import HTTPError

        try:
            answer = call(*given, _preload_content=False, _request_timeout=REQUEST_TIMEOUTS_S, **options)
            return bytes(answer.data)
        except ApiException as error:
            if not error.status:
                raise make_no_answer_error(self.server, error) from None
            if error.status == HTTP_UNAUTHORIZED:
                _cached_cluster.cache_clear()
            raise make_api_refusal(question, self.server, error.status, error.body) from None
        except HTTPError as error:
            raise make_no_answer_error(self.server, error) from None
        except ValidationError as error:
            raise make_invalid_body_error(question, self.server, error) from None

    def list_all(self, question: ApiRequest, call: Callable[..., Any], **options: Any) -> list[KubernetesObject]:
        """Return the items of a list, asked for in chunks; all at once where the list went stale in between."""
        items: list[KubernetesObject] = []
        more: dict[str, Any] = {"limit": LIST_CHUNK}
        while more:
            try:
                page = self.request(question, call, **more, **options)
            except ApiRefusal as refused:
                if refused.status != HTTP_GONE:
                    raise
                return list(self.request(question, call, **options)["items"])
            items += page["items"]
            token = page["metadata"].get("continue")
            more = {"limit": LIST_CHUNK, "_continue": token} if token else {}
        return items


def connect_cluster(settings: KubernetesClusterSettings) -> KubernetesApi:
    """Return the cluster of these settings; its connections are kept until its kubeconfig changes."""
    return _cached_cluster(settings, read_kubeconfig_stamp(settings))


@lru_cache(maxsize=64)
def _cached_cluster(settings: KubernetesClusterSettings, changed: tuple[Any, ...]) -> KubernetesApi:
    del changed
    return KubernetesApi(settings)
