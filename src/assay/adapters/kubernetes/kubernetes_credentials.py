"""Finds the credentials for a Kubernetes API server: a kubeconfig, or a pod's service account. TLS is verified."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.errors import AssayError
from assay.model.specs.node_settings import KubernetesClusterSettings
from assay.model.text.secret_redaction import register_secret

if TYPE_CHECKING:
    from kubernetes.client import Configuration

IN_CLUSTER_VARIABLE = "KUBERNETES_SERVICE_HOST"
DEFAULT_KUBECONFIG = "~/.kube/config"
READ_RETRIES = 2
HTTP_TOO_MANY_REQUESTS, HTTP_UNAVAILABLE = 429, 503


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
        what = "the kubeconfig turns off the verification of the API server's certificate"
        fix = "give the cluster's certificate-authority-data in place of insecure-skip-tls-verify"
        raise AssayError(what, where=configuration.host, fix=fix)
    if not configuration.host.startswith("https://"):
        what = "the API server is not reached over TLS"
        raise AssayError(what, where=configuration.host, fix="give an https:// address")
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
