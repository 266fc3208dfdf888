"""One API server. Answers are read as JSON: the client's models refuse what a newer or older server says otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from assay.actions.kubernetes_workloads.connect import configuration_of, stamp
from assay.actions.kubernetes_workloads.refused import Question, Refused, away, refusal, unspoken
from assay.fleet.kubernetes_cluster import KubernetesCluster

WITHIN_S = (5.0, 30.0)
"""How long a connection may take, and then the silence before or within an answer."""

CHUNK = 500
GONE = 410
UNKNOWN_TO_IT = 401
STRATEGIC = "application/strategic-merge-patch+json"
Object = dict[str, Any]


class Cluster:
    """The client's APIs, and the way to ask them."""

    def __init__(self, settings: KubernetesCluster) -> None:
        from kubernetes import client

        told = configuration_of(settings)
        self.server = str(told.host)
        channel = client.ApiClient(told)
        self.core, self.policy = client.CoreV1Api(channel), client.PolicyV1Api(channel)

    def ask(self, question: Question, call: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Return the JSON that a call answers. Raises Refused, or Trouble where there is no answer."""
        return json.loads(self.ask_bytes(question, call, *given, **options))

    def ask_bytes(self, question: Question, call: Callable[..., Any], *given: Any, **options: Any) -> bytes:
        """Return what a call answers, as it came."""
        from kubernetes.client import ApiException
        from pydantic import ValidationError
        from urllib3.exceptions import HTTPError

        try:
            answer = call(*given, _preload_content=False, _request_timeout=WITHIN_S, **options)
            return bytes(answer.data)
        except ApiException as error:
            if not error.status:
                raise away(self.server, error) from None
            if error.status == UNKNOWN_TO_IT:
                _connected.cache_clear()
            raise refusal(question, self.server, error.status, error.body) from None
        except HTTPError as error:
            raise away(self.server, error) from None
        except ValidationError as error:
            raise unspoken(question, self.server, error) from None

    def every(self, question: Question, call: Callable[..., Any], **options: Any) -> list[Object]:
        """Return the items of a list, asked for in chunks; all at once where the list went stale in between."""
        items: list[Object] = []
        more: dict[str, Any] = {"limit": CHUNK}
        while more:
            try:
                page = self.ask(question, call, **more, **options)
            except Refused as refused:
                if refused.status != GONE:
                    raise
                return list(self.ask(question, call, **options)["items"])
            items += page["items"]
            token = page["metadata"].get("continue")
            more = {"limit": CHUNK, "_continue": token} if token else {}
        return items


def connected(settings: KubernetesCluster) -> Cluster:
    """Return the cluster of these settings; its connections are kept until its kubeconfig changes."""
    return _connected(settings, stamp(settings))


@lru_cache(maxsize=64)
def _connected(settings: KubernetesCluster, changed: tuple[Any, ...]) -> Cluster:
    del changed
    return Cluster(settings)
