"""The scheduler adapter `lab`, for `assay.lab.scheduler_server`.

The inventory variable `workloads: lab` selects it; `lab_scheduler` is the server's URL.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request as Call
from urllib.request import urlopen

from assay.adapters.scheduler_adapter import VERIFY_UNDRAIN, CustomerJob, SchedulerNodeStatus, SpareRunResult
from assay.model.cordon_ownership import is_our_reason, prefix_reason
from assay.model.errors import AssayError
from assay.model.specs.node_settings import NodeSettings

ANSWER_WITHIN_S = 5.0


class LabScheduler:
    """The adapter `lab`, built from a node's settings. Raises AssayError without `lab_scheduler`."""

    places_jobs = True

    def __init__(self, settings: NodeSettings) -> None:
        self.address = str(settings.other_variables.get("lab_scheduler", ""))
        if not self.address:
            raise AssayError(
                "workloads is `lab`, but the inventory variable `lab_scheduler` is not set",
                fix="start the lab: `assay lab up` adds its addresses to the inventory",
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabScheduler) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the jobs running on the node."""
        found = self._request("GET", f"/jobs?node={quote(node)}")["jobs"]
        return tuple(CustomerJob(job["id"], job["name"], job["owner"], job["since"]) for job in found)

    def read_cordon_reason(self, node: str) -> str:
        """Return the reason of the node's cordon, "" if it has none."""
        return str(self._request("GET", f"/nodes/{quote(node)}")["cordon"])

    def cordon(self, node: str, reason: str) -> None:
        """Cordon the node, so that no new job starts; an existing cordon stays as it is."""
        if not self.read_cordon_reason(node):
            self._request("PUT", f"/nodes/{quote(node)}/cordon", {"reason": prefix_reason(reason)})

    def uncordon(self, node: str) -> None:
        """Remove the cordon if it is ours."""
        if is_our_reason(self.read_cordon_reason(node)):
            self._request("DELETE", f"/nodes/{quote(node)}/cordon")

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node; with `now`, also end and requeue its jobs."""
        self.cordon(node, reason)
        if now:
            self._request("POST", f"/nodes/{quote(node)}/requeue")

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return the status of each node, with one request."""
        jobs: dict[str, list[CustomerJob]] = defaultdict(list)
        answer = self._request("GET", "/standings")
        for job in answer["jobs"]:
            jobs[job["node"]].append(CustomerJob(job["id"], job["name"], job["owner"], job["since"]))
        return {node: SchedulerNodeStatus(tuple(jobs[node]), answer["cordons"].get(node, "")) for node in nodes}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon several nodes with one request. `reasons` maps a node to its reason."""
        self._request("PUT", "/cordons", {node: prefix_reason(reason) for node, reason in reasons.items()})

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command on the node until a customer's job is placed there."""
        order = {"command": list(command), "given": b64encode(given).decode(), "deadline_s": deadline_s}
        answer = self._request("POST", f"/nodes/{quote(node)}/spare", order, deadline_s + ANSWER_WITHIN_S)
        output = b64decode(answer["output"])
        return SpareRunResult(answer["code"], output, answer["errors"], answer["yielded"], answer["gone_ms"])

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Remove a cordon that asks for verification and is older than `began`; return its reason, else ""."""
        answer = self._request("GET", f"/nodes/{quote(node)}")
        if VERIFY_UNDRAIN not in answer["cordon"] or datetime.fromisoformat(answer["since"]) > began:
            return ""
        self._request("DELETE", f"/nodes/{quote(node)}/cordon")
        return str(answer["cordon"])

    def place(self, name: str, owner: str, node: str, seconds: float) -> CustomerJob:
        """Start a customer's job of `seconds` lab seconds on a node. Raises AssayError if it is cordoned."""
        job = self._request("POST", "/jobs", {"name": name, "owner": owner, "node": node, "seconds": seconds})
        return CustomerJob(job["id"], job["name"], job["owner"], job["since"])

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, within_s: float = ANSWER_WITHIN_S
    ) -> Any:
        content = json.dumps(body).encode() if body is not None else None
        call = Call(self.address + path, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urlopen(call, timeout=within_s) as answer:  # noqa: S310 — loopback, from the lab's own overlay
                return json.load(answer)
        except HTTPError as refusal:
            raise AssayError(f"the scheduler refused: {refusal.read().decode()}", where=self.address) from None
        except (URLError, OSError) as lost:
            raise AssayError(
                f"the scheduler does not answer: {lost}", where=self.address, fix="is the lab up? `assay lab status`"
            ) from None
