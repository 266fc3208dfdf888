"""Speaks to a Kubernetes API server. Answers are read as JSON: the client's models reject those of other versions.

An answer that is cut short, or is no list where a list was asked for, is an error and never an empty list. Credentials
are those of a kubeconfig, or of a pod's service account. TLS is verified.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.node_settings import KubernetesClusterSettings
from assay.model.text.safe_text import redact, register_secret

if TYPE_CHECKING:
    from kubernetes.client import ApiException, Configuration
    from pydantic import ValidationError


KubernetesObject = dict[str, Any]
IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
DEFAULT_KUBECONFIG = "~/.kube/config"
READ_RETRIES = 2
REQUEST_TIMEOUTS_S = (5.0, 30.0)
"""The limits for a connection, and for the silence before or within an answer."""
LIST_CHUNK = 500
VERSION_AGE_S = 300.0
MAX_MESSAGE_LENGTH = 300
HTTP_UNAUTHORIZED, HTTP_FORBIDDEN, HTTP_NOT_FOUND, HTTP_CONFLICT, HTTP_GONE = 401, 403, 404, 409, 410
HTTP_TOO_MANY_REQUESTS, HTTP_UNAVAILABLE = 429, 503
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
OLDEST_VERSION = (1, 20)
"""The oldest server that the tests run: its `policy/v1beta1` has the budgets and evictions that assay uses."""
POLICY_V1_VERSION = (1, 22)
"""The first server that takes evictions of `policy/v1`. Version 1.25 dropped `policy/v1beta1`."""


@frozen
class ApiRequest:
    """A request in the words of RBAC: a verb and a resource, and the object's name and namespace, if any."""

    verb: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.resource}{name}{f' in {self.namespace}' if self.namespace else ''}"


class ApiRefusal(AssayError):
    """The API server refused a request with an HTTP `status`, and asks not to be asked again for `retry_after_s`."""

    def __init__(self, problem: str, *, where: str, fix: str, status: int, retry_after_s: float = 0.0) -> None:
        super().__init__(problem, where=where, fix=fix)
        self.status, self.retry_after_s = status, retry_after_s


def connect_cluster(settings: KubernetesClusterSettings) -> KubernetesApi:
    """Return the API of the cluster of these settings. Its connections are reused until its kubeconfig changes."""
    return _cached_cluster(settings, read_kubeconfig_stamp(settings))


@lru_cache(maxsize=64)
def _cached_cluster(settings: KubernetesClusterSettings, stamp: tuple[Any, ...]) -> KubernetesApi:
    del stamp
    return KubernetesApi(settings)


class KubernetesApi:
    """One API server. `core` and `events` are the official client's APIs of core resources and of `events.k8s.io`.

    `request` calls their methods. Before anything else, the server is asked for its version, and again every
    VERSION_AGE_S: clusters are upgraded.
    """

    def __init__(self, settings: KubernetesClusterSettings) -> None:
        from kubernetes import client

        self._settings = settings
        configuration = load_client_configuration(settings)
        self.server = str(configuration.host)
        self._client = client.ApiClient(configuration)
        self._version: tuple[float, ServerVersion] | None = None
        self.core, self.events = client.CoreV1Api(self._client), client.EventsV1Api(self._client)

    def read_version(self) -> ServerVersion:
        """Return the server's version. Raises AssayError for one that is too old."""
        from kubernetes import client

        if self._version is None or time.monotonic() - self._version[0] > VERSION_AGE_S:
            answer = self._send(ApiRequest("get", "/version"), client.VersionApi(self._client).get_code)
            self._version = time.monotonic(), parse_server_version(self._parse(answer), self.server)
        return self._version[1]

    def request(self, request: ApiRequest, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Return the JSON object that a call answers. Raises ApiRefusal, or AssayError if there is no such answer."""
        return self._parse(self.request_bytes(request, call, *arguments, **options))

    def request_bytes(self, request: ApiRequest, call: Callable[..., Any], *arguments: Any, **options: Any) -> bytes:
        """Return the body that a call answers. Raises as `request` does."""
        self.read_version()
        return self._send(request, call, *arguments, **options)

    def list_all(self, request: ApiRequest, call: Callable[..., Any], **options: Any) -> list[KubernetesObject]:
        """Return the items of a list, read in chunks. If the list expires in between, read it in one piece."""
        items: list[KubernetesObject] = []
        chunk: dict[str, Any] = {"limit": LIST_CHUNK}
        while chunk:
            try:
                page = self.request(request, call, **chunk, **options)
            except ApiRefusal as refusal:
                if refusal.status != HTTP_GONE:
                    raise
                return self.list_at_once(request, call, **options)
            items += self._read_items(request, page)
            token = (page.get("metadata") or {}).get("continue")
            chunk = {"limit": LIST_CHUNK, "_continue": token} if token else {}
        return items

    def list_at_once(self, request: ApiRequest, call: Callable[..., Any], **options: Any) -> list[KubernetesObject]:
        """Return the items of a list that is read in one piece."""
        return self._read_items(request, self.request(request, call, **options))

    def list_budgets(self) -> list[KubernetesObject]:
        """Return every PodDisruptionBudget, from the API server's cache."""
        from kubernetes import client

        call = partial(client.CustomObjectsApi(self._client).list_cluster_custom_object, "policy")
        version = self.read_version().policy_version
        request = ApiRequest("list", "poddisruptionbudgets")
        return self.list_at_once(request, partial(call, version, "poddisruptionbudgets"), resource_version="0")

    def _send(self, request: ApiRequest, call: Callable[..., Any], *arguments: Any, **options: Any) -> bytes:
        """Call, and once again with the credentials of now if the server does not take those that we have."""
        try:
            return self._send_once(request, call, *arguments, **options)
        except ApiRefusal as refusal:
            if refusal.status != HTTP_UNAUTHORIZED:
                raise
        self._renew_credentials()
        try:
            return self._send_once(request, call, *arguments, **options)
        except ApiRefusal as refusal:
            if refusal.status == HTTP_UNAUTHORIZED:
                _cached_cluster.cache_clear()
            raise

    def _send_once(self, request: ApiRequest, call: Callable[..., Any], *arguments: Any, **options: Any) -> bytes:
        from kubernetes.client import ApiException
        from pydantic import ValidationError
        from urllib3.exceptions import HTTPError

        try:
            answer = call(*arguments, _preload_content=False, _request_timeout=REQUEST_TIMEOUTS_S, **options)
            return bytes(answer.data)
        except ApiException as error:
            if not error.status:
                raise make_no_answer_error(self.server, error) from None
            raise make_api_refusal(request, self.server, error) from None
        except HTTPError as error:
            raise make_no_answer_error(self.server, error) from None
        except ValidationError as error:
            raise make_invalid_body_error(request, self.server, error) from None

    def _renew_credentials(self) -> None:
        """Read the credentials anew: a token or a certificate lives for hours, a controller for months."""
        from kubernetes.client.rest import RESTClientObject

        configuration = load_client_configuration(self._settings)
        self._client.configuration, self._client.rest_client = configuration, RESTClientObject(configuration)

    def _parse(self, answer: bytes) -> KubernetesObject:
        try:
            parsed = json.loads(answer)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise self._make_unusable_error(f"its answer is no JSON object: {answer[:60]!r}")
        return parsed

    def _read_items(self, request: ApiRequest, page: KubernetesObject) -> list[KubernetesObject]:
        """Return the items of an answer. Kubernetes may write `null` for none; without the key, it is no list."""
        items = page.get("items", ...)
        if items is None:
            return []
        if not isinstance(items, list):
            raise self._make_unusable_error(f"its answer to {request} is no list but a {page.get('kind') or 'riddle'}")
        return items

    def _make_unusable_error(self, problem: str) -> AssayError:
        fix = "`kubectl get nodes -o json` asks it too; is there a proxy in between?"
        return AssayError(f"the API server cannot be understood: {problem}", where=self.server, fix=fix)


def list_running_pods(context: str, namespace: str, labels: str) -> dict[str, str]:
    """Return node → pod of the running pods that a label selector selects.

    `context` is one of the kubeconfig, "" for its current one. Raises AssayError if the cluster does not answer.
    """
    cluster = connect_cluster(KubernetesClusterSettings(context=context))
    options = {"namespace": namespace, "label_selector": labels, "field_selector": "status.phase=Running"}
    request = ApiRequest("list", "pods", namespace=namespace)
    pods = cluster.list_all(request, cluster.core.list_namespaced_pod, **options)
    return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in pods}


def make_api_refusal(request: ApiRequest, server: str, error: ApiException) -> ApiRefusal:
    """Return the error for a refused request, from the HTTP status, headers and body of the answer."""
    status = int(error.status or 0)
    message = redact(_read_status_message(error.body) or "no reason given")[:MAX_MESSAGE_LENGTH]
    problem, fix = f"the API server refused to {request} ({status}): {message}", ""
    if status == HTTP_UNAUTHORIZED:
        problem, fix = "the API server does not know us (401)", "the kubeconfig's credentials are wrong or have expired"
    elif status == HTTP_FORBIDDEN:
        scope = f" in the namespace {request.namespace}" if request.namespace else ""
        problem = f"RBAC does not let us `{request.verb}` `{request.resource}`{scope}: {message}"
        fix = "`kubectl apply -f deploy/kubernetes.yaml` grants it"
    elif status == HTTP_NOT_FOUND and request.resource.startswith("nodes"):
        problem = f"the cluster does not know the node {request.name}"
        fix = "give the node the same name in the inventory and in the cluster: see `kubectl get nodes`"
    asked = str((error.headers or {}).get("Retry-After") or "")
    return ApiRefusal(
        problem, where=server, fix=fix, status=status, retry_after_s=float(asked) if asked.isdigit() else 0.0
    )


def make_no_answer_error(server: str, error: Exception) -> AssayError:
    """Return the error for a server that gives no answer."""
    reason = error.__cause__ or getattr(error, "reason", None) or error
    message = redact(str(reason)).strip().rpartition("\n")[2][:MAX_MESSAGE_LENGTH]
    if "certificate" in message.lower():
        fix = "the kubeconfig's certificate-authority-data must be this cluster's"
        return AssayError(f"the API server's certificate is not trusted: {message}", where=server, fix=fix)
    fix = "`kubectl get --raw /readyz` asks it too"
    return AssayError(f"the API server does not answer: {message}", where=server, fix=fix)


def make_invalid_body_error(request: ApiRequest, server: str, error: ValidationError) -> AssayError:
    """Return the error for a body that the client refuses to send."""
    fields = ", ".join(".".join(map(str, field_error["loc"][1:])) for field_error in error.errors(include_input=False))
    problem = f"the Kubernetes client cannot {request}: it does not know these fields of the body: {fields}"
    return AssayError(problem, where=server, fix="remove the fields, or install a client as new as the cluster")


def _read_status_message(body: Any) -> str:
    """Return the message of a Status object, else the first line of the body."""
    try:
        status = json.loads(body)
    except (TypeError, ValueError):
        return str(body).strip().partition("\n")[0] if body else ""
    return str(status.get("message") or "") if isinstance(status, dict) else ""


@frozen
class ServerVersion:
    """The version of an API server. `text` is how the server writes it, such as v1.31.2-gke.100."""

    major: int
    minor: int
    text: str

    @property
    def policy_version(self) -> str:
        """The version of the API group `policy`, for budgets and evictions."""
        return "v1" if (self.major, self.minor) >= POLICY_V1_VERSION else "v1beta1"


def parse_server_version(answer: Any, server: str) -> ServerVersion:
    """Return the version that the `/version` of a server answers.

    Raises AssayError if it answers none, or one older than OLDEST_VERSION.
    """
    fields = answer if isinstance(answer, Mapping) else {}
    text = str(fields.get("gitVersion") or "")
    numbers = re.match(r"v?(\d+)\.(\d+)", text)
    if numbers is None:
        fix = "`kubectl version` shows it; is there a proxy in between?"
        raise AssayError("the API server does not say which version it is", where=server, fix=fix)
    version = ServerVersion(int(numbers[1]), int(numbers[2]), text)
    if (version.major, version.minor) < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        problem = f"the API server is Kubernetes {text}, and assay needs {oldest} or newer"
        raise AssayError(problem, where=server, fix="upgrade the cluster: docs/kubernetes.md names the versions")
    return version


def load_client_configuration(settings: KubernetesClusterSettings) -> Configuration:
    """Return the official client's configuration.

    Raises AssayError if there is none, or if it would not verify the server's certificate.
    """
    from kubernetes import client
    from urllib3 import Retry

    configuration = client.Configuration()
    if not settings.kubeconfig and not os.environ.get("KUBECONFIG") and os.environ.get(IN_CLUSTER_VARIABLE):
        _load_in_cluster(configuration)
    else:
        _load_kubeconfig(settings, configuration)
    if not configuration.verify_ssl:
        problem = "the kubeconfig turns off the verification of the API server's certificate"
        fix = "give the cluster's certificate-authority-data in place of insecure-skip-tls-verify"
        raise AssayError(problem, where=configuration.host, fix=fix)
    if not configuration.host.startswith("https://"):
        problem = "the API server is not reached over TLS"
        raise AssayError(problem, where=configuration.host, fix="give an https:// address")
    for token in configuration.api_key.values():
        register_secret(str(token).rpartition(" ")[2])
    configuration.retries = Retry(
        total=READ_RETRIES,
        connect=0,
        redirect=0,
        status_forcelist=(HTTP_TOO_MANY_REQUESTS, HTTP_UNAVAILABLE),  # of a GET; an eviction's 429 is an answer
        allowed_methods={"GET"},
        raise_on_status=False,
    )
    return configuration


def read_kubeconfig_stamp(settings: KubernetesClusterSettings) -> tuple[Any, ...]:
    """Return a value that changes when a kubeconfig is replaced, so that its new credentials are read."""
    stamps = []
    for path in _list_kubeconfigs(settings):
        try:
            stamps.append((str(path), path.stat().st_mtime_ns))
        except OSError:
            stamps.append((str(path), 0))
    return os.environ.get(IN_CLUSTER_VARIABLE), *stamps


def _list_kubeconfigs(settings: KubernetesClusterSettings) -> list[Path]:
    names = settings.kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    return [Path(name).expanduser() for name in names.split(os.pathsep) if name]


def _load_kubeconfig(settings: KubernetesClusterSettings, configuration: Configuration) -> None:
    from kubernetes import config

    paths = _list_kubeconfigs(settings)
    files = [path for path in paths if path.is_file()]
    where = os.pathsep.join(map(str, files or paths))
    if not files:
        fix = "set `kubernetes: {kubeconfig: PATH}` in the inventory, or KUBECONFIG"
        raise AssayError("there is no kubeconfig", where=where, fix=fix)
    try:
        load: Callable[..., None] = config.load_kube_config
        load(where, settings.context or None, configuration, persist_config=False)
    except Exception as error:  # the library passes on what its YAML reader and its credential plugins raise
        fix = "`kubectl config get-contexts` lists what it holds"
        raise AssayError(f"the kubeconfig cannot be used: {_first_line(error)}", where=where, fix=fix) from None


def _load_in_cluster(configuration: Configuration) -> None:
    from kubernetes import config

    try:
        load: Callable[..., None] = config.load_incluster_config
        load(client_configuration=configuration)
    except (config.ConfigException, OSError) as error:
        fix = "give the pod a service account whose token is mounted (deploy/kubernetes.yaml)"
        raise AssayError(f"this pod has no credentials: {_first_line(error)}", fix=fix) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
