"""The way to an API server: by kubeconfig or as a pod of the cluster, over TLS that is verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.fleet.kubernetes_cluster import KubernetesCluster
from assay.model.errors import Trouble
from assay.model.secrets import remember

if TYPE_CHECKING:
    from kubernetes.client import Configuration

IN_A_POD = "KUBERNETES_SERVICE_HOST"
USUAL = "~/.kube/config"
READS_AGAIN = 2


def configuration_of(settings: KubernetesCluster) -> Configuration:
    """Return the client's configuration. Raises Trouble where it cannot be had, or where TLS would not be verified."""
    from kubernetes import client
    from urllib3 import Retry

    told = client.Configuration()
    _load(settings, told)
    if not told.verify_ssl:
        fix = "give the cluster's certificate-authority-data in place of insecure-skip-tls-verify"
        raise Trouble("the kubeconfig switches the check of the API server's certificate off", where=told.host, fix=fix)
    if not told.host.startswith("https://"):
        raise Trouble("the API server is not reached over TLS", where=told.host, fix="give an https:// address")
    for token in told.api_key.values():
        remember(str(token).rpartition(" ")[2])
    told.retries = Retry(
        total=READS_AGAIN,
        connect=0,
        redirect=0,
        status_forcelist=(429, 503),  # the server asks for patience; an eviction's 429 is an answer, and no GET
        allowed_methods={"GET"},
        raise_on_status=False,
    )
    return told


def stamp(settings: KubernetesCluster) -> tuple[Any, ...]:
    """Return what changes when a kubeconfig is replaced, so that its new credentials are read."""
    return os.environ.get(IN_A_POD), *(_changed(path) for path in _files(settings))


def _files(settings: KubernetesCluster) -> list[Path]:
    told = settings.kubeconfig or os.environ.get("KUBECONFIG") or USUAL
    return [Path(name).expanduser() for name in told.split(os.pathsep) if name]


def _changed(path: Path) -> tuple[str, int]:
    try:
        return str(path), path.stat().st_mtime_ns
    except OSError:
        return str(path), 0


def _load(settings: KubernetesCluster, told: Configuration) -> None:
    from kubernetes import config

    if not settings.kubeconfig and not os.environ.get("KUBECONFIG") and os.environ.get(IN_A_POD):
        return _as_a_pod(told)
    files = [path for path in _files(settings) if path.is_file()]
    where = os.pathsep.join(map(str, files or _files(settings)))
    if not files:
        fix = "set `kubernetes: {kubeconfig: PATH}` in the inventory, or KUBECONFIG"
        raise Trouble("there is no kubeconfig", where=where, fix=fix)
    try:
        load: Callable[..., None] = config.load_kube_config
        load(os.pathsep.join(map(str, files)), settings.context or None, told, persist_config=False)
    except Exception as error:  # the library lets through what its YAML reader and its credential plugins raise
        fix = "`kubectl config get-contexts` lists what it holds"
        raise Trouble(f"the kubeconfig cannot be used: {_first_line(error)}", where=where, fix=fix) from None


def _as_a_pod(told: Configuration) -> None:
    from kubernetes import config

    try:
        load: Callable[..., None] = config.load_incluster_config
        load(client_configuration=told)
    except (config.ConfigException, OSError) as error:
        fix = "give the pod a service account whose token is mounted (deploy/kubernetes.yaml)"
        raise Trouble(f"this pod has no credentials: {_first_line(error)}", fix=fix) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
