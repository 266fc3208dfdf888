"""The adapter `lab`, which the inventory variable `workloads` names, with the far end's address in `lab_scheduler`."""

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

from assay.actions.workloads import VERIFY_UNDRAIN, Job, Spare, Standing, our_reason, ours
from assay.model.errors import Trouble

ANSWER_WITHIN_S = 5.0


class LabWorkloads:
    """The adapter `lab`. Built from a node's inventory variables."""

    places = True

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self.address = str(variables.get("lab_scheduler", ""))
        if not self.address:
            raise Trouble(
                "workloads is `lab`, but the inventory variable `lab_scheduler` is not set",
                fix="start the lab (`assay lab up`), which lays its addresses over the inventory",
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabWorkloads) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Return the jobs that run on the node now."""
        found = self._ask("GET", f"/jobs?node={quote(node)}")["jobs"]
        return tuple(Job(job["id"], job["name"], job["owner"], job["since"]) for job in found)

    def cordoned(self, node: str) -> str:
        """Return the reason of the cordon that stands, or ""."""
        return str(self._ask("GET", f"/nodes/{quote(node)}")["cordon"])

    def cordon(self, node: str, reason: str) -> None:
        """Let no new job start, unless somebody has said so before."""
        if not self.cordoned(node):
            self._ask("PUT", f"/nodes/{quote(node)}/cordon", {"reason": our_reason(reason)})

    def uncordon(self, node: str) -> None:
        """Undo our own cordon."""
        if ours(self.cordoned(node)):
            self._ask("DELETE", f"/nodes/{quote(node)}/cordon")

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon; with `now` end and requeue the jobs."""
        self.cordon(node, reason)
        if now:
            self._ask("POST", f"/nodes/{quote(node)}/requeue")

    def standings(self, nodes: Collection[str]) -> dict[str, Standing]:
        """Return how each node stands, by one question."""
        jobs: dict[str, list[Job]] = defaultdict(list)
        told = self._ask("GET", "/standings")
        for job in told["jobs"]:
            jobs[job["node"]].append(Job(job["id"], job["name"], job["owner"], job["since"]))
        return {node: Standing(tuple(jobs[node]), told["cordons"].get(node, "")) for node in nodes}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon each node, by one order."""
        self._ask("PUT", "/cordons", {node: our_reason(reason) for node, reason in reasons.items()})

    def spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> Spare:
        """Run a command on the node until a customer's job is placed there."""
        wish = {"command": list(command), "given": b64encode(given).decode(), "deadline_s": deadline_s}
        told = self._ask("POST", f"/nodes/{quote(node)}/spare", wish, deadline_s + ANSWER_WITHIN_S)
        return Spare(told["code"], b64decode(told["output"]), told["errors"], told["yielded"])

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Undo a cordon that asks for it and was there when the verification began; return its reason, or ""."""
        told = self._ask("GET", f"/nodes/{quote(node)}")
        if VERIFY_UNDRAIN not in told["cordon"] or datetime.fromisoformat(told["since"]) > began:
            return ""
        self._ask("DELETE", f"/nodes/{quote(node)}/cordon")
        return str(told["cordon"])

    def place(self, name: str, owner: str, node: str, seconds: float) -> Job:
        """Start a job of `seconds` lab seconds on a node, as a customer would. Trouble where it is cordoned."""
        wish = {"name": name, "owner": owner, "node": node, "seconds": seconds}
        job = self._ask("POST", "/jobs", wish)
        return Job(job["id"], job["name"], job["owner"], job["since"])

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, within_s: float = ANSWER_WITHIN_S
    ) -> Any:
        content = json.dumps(body).encode() if body is not None else None
        call = Call(self.address + path, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urlopen(call, timeout=within_s) as answer:  # noqa: S310 — loopback, from the lab's own overlay
                return json.load(answer)
        except HTTPError as refusal:
            raise Trouble(f"the scheduler refused: {refusal.read().decode()}", where=self.address) from None
        except (URLError, OSError) as lost:
            raise Trouble(
                f"the scheduler does not answer: {lost}", where=self.address, fix="is the lab up? `assay lab status`"
            ) from None
