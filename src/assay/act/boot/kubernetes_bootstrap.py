"""Makes a bootstrap token of Kubernetes for one start of one node, with an end: a Secret in kube-system.

The format is of the Kubernetes documentation, "Authenticating with Bootstrap Tokens".
"""

from __future__ import annotations

import secrets
import string
from datetime import datetime

from assay.act.boot.join_tokens import JoinRequest
from assay.adapters.kubernetes.kubernetes_client import ApiRequest, connect_cluster
from assay.model.specs.node_settings import KubernetesClusterSettings
from assay.model.specs.provisioning_spec import KubernetesJoin
from assay.model.text.secret_redaction import register_secret
from assay.model.timestamps import format_time

SYSTEM = "kube-system"
GROUP = "system:bootstrappers:assay"
"""Nodes join as this group; RBAC of the cluster says what it may do."""
ALPHABET = string.ascii_lowercase + string.digits


def make_bootstrap_token(join: KubernetesJoin, asked: JoinRequest, expires_at: datetime) -> str:
    """Return a new token, good until `expires_at`. Raises AssayError where the API server refuses it."""
    ident, secret = (_draw(length) for length in (6, 16))
    register_secret(secret)
    content = {
        "token-id": ident,
        "token-secret": secret,
        "expiration": format_time(expires_at),
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": GROUP,
        "description": f"assay: {asked.node}, start {asked.attempt}",
    }
    name = f"bootstrap-token-{ident}"
    body = {"metadata": {"name": name}, "type": "bootstrap.kubernetes.io/token", "stringData": content}
    api = connect_cluster(KubernetesClusterSettings(kubeconfig=join.kubeconfig, context=join.context))
    api.request(ApiRequest("create", "secrets", name, SYSTEM), api.core.create_namespaced_secret, SYSTEM, body)
    return f"{ident}.{secret}"


def _draw(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
