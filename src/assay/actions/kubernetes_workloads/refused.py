"""What an API server's refusal means, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.model.errors import Trouble
from assay.model.secrets import hidden

if TYPE_CHECKING:
    from pydantic import ValidationError

LONGEST = 300


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked for: a verb and a resource as RBAC calls them, and the object's name and namespace, if any."""

    verb: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.resource}{named}{f' in {self.namespace}' if self.namespace else ''}"


class Refused(Trouble):
    """An API server that said no. `status` is HTTP's."""

    def __init__(self, what: str, *, where: str, fix: str, status: int) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


def refusal(question: Question, server: str, status: int, body: Any) -> Refused:
    """Return the refusal of a question by a `server`, whose answer had this HTTP `status` and `body`."""
    told = _status(body)
    said = hidden(str(told.get("message") or "no reason given"))[:LONGEST]
    what, fix = _words(question, status, said)
    return Refused(what, where=server, fix=fix, status=status)


def away(server: str, error: Exception) -> Trouble:
    """Return what a server that gives no answer comes to."""
    reason = error.__cause__ or getattr(error, "reason", None) or error
    said = hidden(str(reason)).strip().rpartition("\n")[2][:LONGEST]
    if "certificate" in said.lower():
        fix = "the kubeconfig's certificate-authority-data must be of this cluster"
        return Trouble(f"the API server's certificate is not trusted: {said}", where=server, fix=fix)
    return Trouble(
        f"the API server does not answer: {said}", where=server, fix="`kubectl get --raw /readyz` asks it too"
    )


def unspoken(question: Question, server: str, error: ValidationError) -> Trouble:
    """Return what a body comes to that the client does not let out."""
    fields = ", ".join(".".join(map(str, one["loc"][1:])) for one in error.errors(include_input=False))
    fix = "leave it out, or use an assay whose client is as new as the cluster"
    return Trouble(f"the client that should {question} takes no such body: {fields}", where=server, fix=fix)


def _words(question: Question, status: int, said: str) -> tuple[str, str]:
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


def _status(body: Any) -> dict[str, Any]:
    """Return the Status object of an answer's body, empty for a body that is none."""
    try:
        told = json.loads(body)
    except (TypeError, ValueError):
        return {"message": str(body).strip().partition("\n")[0]} if body else {}
    return told if isinstance(told, dict) else {}
