#!/usr/bin/env python3
"""One step of NVIDIA's suite for AI clouds (NVIDIA/ai-cloud-validation), answered by the API of `assay serve`.

    python assay_step.py reset_gpus --machine-id n0007

It prints the JSON document that the step's checks read. Standard library only; README.md beside it says how to bind it.
Environment: ASSAY_SERVER (https://…), ASSAY_TOKEN_FILE (an operator's token), ASSAY_CUSTOMER_TOKEN_FILE (a customer's),
ASSAY_CA (the file of the server's authority).
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

Document = dict[str, Any]
POLL_S = 5.0
ENDED = ("succeeded", "failed", "cancelled")


class Refused(Exception):
    """The API refused, or did not answer; the text says why."""


class Api:
    """The API of one server, for the holder of one token."""

    def __init__(self, holder: str = "ASSAY_TOKEN_FILE") -> None:
        self._server = os.environ["ASSAY_SERVER"].rstrip("/")
        self._token = Path(os.environ[holder]).read_text().strip()
        self._tls = ssl.create_default_context(cafile=os.environ.get("ASSAY_CA"))

    def ask(self, path: str, body: Document | None = None) -> Any:
        """Return the answer to a GET, or to a POST of `body`. Raises Refused."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        call = urllib.request.Request(f"{self._server}/api/v1{path}", data, headers)  # noqa: S310 — the site's own server
        try:
            with urllib.request.urlopen(call, timeout=60, context=self._tls) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise Refused(f"{refusal.code}: {json.loads(refusal.read() or b'{}').get('detail', '')}") from None
        except OSError as lost:
            raise Refused(str(lost)) from None

    def order(self, operation: str, **what: Any) -> Document:
        """Order an operation, and return its record."""
        body = {"operation": operation, "reason": "NVIDIA's suite asks for it", "key": uuid.uuid4().hex, **what}
        record: Document = self.ask("/operations", body)
        return record

    def follow(self, record: Document, patience_s: float) -> Document:
        """Return the operation when it has ended, or after so many seconds as it is then."""
        ends_at = time.monotonic() + patience_s
        while record["state"] not in ENDED and time.monotonic() < ends_at:
            time.sleep(POLL_S)
            record = self.ask(f"/operations/{record['id']}")
        return record


def reset_gpus(options: argparse.Namespace) -> Document:
    """BFX01-01: reset all GPUs of a node. `--now` is the suite's: it does not wait for jobs."""
    api = Api()
    record = api.follow(api.order("gpu-reset", nodes=[options.machine_id], now=True), options.patience)
    [node] = record["nodes"]
    return {"operation": _describe(record, completed=record["state"] == "succeeded", node_id=node["node"])}


def return_node_maintenance(options: argparse.Namespace) -> Document:
    """BFX01-02: give a node back for maintenance."""
    record = Api().order("maintenance", nodes=[options.machine_id])
    return {"operation": _describe(record, machine_id=options.machine_id, maintenance_mode=record["to"])}


def return_rack_maintenance(options: argparse.Namespace) -> Document:
    """BFX01-03: give a rack back for maintenance."""
    return {"operation": _describe(Api().order("maintenance", rack=options.rack_id), rack_id=options.rack_id)}


def request_host_replacement(options: argparse.Namespace) -> Document:
    """BFX01-05: ask for a replacement; the node leaves its pool."""
    api = Api()
    record = api.follow(api.order("replace", nodes=[options.machine_id], now=True), options.patience)
    serves = api.ask(f"/nodes/{options.machine_id}")["node"]["in_service"]
    return {"operation": _describe(record, machine_id=options.machine_id, node_removed_from_pool=not serves)}


def query_maintenance_events(_: argparse.Namespace) -> Document:
    """BFX02-01: planned and present maintenance of each node."""
    records = Api().ask("/operations?open=true&limit=1000")
    return {"events_queryable": True, "events": [event for record in records for event in _list_events(record)]}


def query_repair_history(_: argparse.Namespace) -> Document:
    """BFX02-03: the repairs of each machine, by the id that no repair changes."""
    machines: dict[str, list[Document]] = defaultdict(list)
    for repair in Api().ask("/repairs?limit=1000"):
        machines[repair["machine"]].append(repair)
    records = [{"machine_id": machine, "entries": entries} for machine, entries in machines.items()]
    return {"history_queryable": True, "records": records}


def query_planned_notifications(_: argparse.Namespace) -> Document:
    """BFX05-01: what a customer's own token is told of planned work."""
    records = Api("ASSAY_CUSTOMER_TOKEN_FILE").ask("/operations?open=true&limit=1000")
    planned = [event for record in records if record["starts_at"] for event in _list_events(record)]
    return {"notification_channel_observable": True, "notifications": planned}


def query_failure_notifications(_: argparse.Namespace) -> Document:
    """BFX06-01: what a customer's own token is told of nodes that left service."""
    api = Api("ASSAY_CUSTOMER_TOKEN_FILE")
    gone = [node for node in api.ask("/nodes?limit=1000")["nodes"] if not node["in_service"]]
    told = [
        {
            "machine_id": node["node"],
            "type": "failure",
            "message": json.dumps(api.ask(f"/nodes/{node['node']}")["details"]),
            "notified_at": node["since"],
        }
        for node in gone
    ]
    return {"notification_channel_observable": True, "notifications": told}


def _describe(record: Document, **more: Any) -> Document:
    texts = "; ".join(f"{node['node']}: {node['state']} {node['text']}".strip() for node in record["nodes"])
    return {"requested": True, "accepted": True, "operation_id": record["id"], "message": texts, **more}


def _list_events(record: Document) -> list[Document]:
    window = f" from {record['starts_at']} to {record['ends_at']}" if record["starts_at"] else ""
    return [
        {
            "machine_id": node["node"],
            "type": "planned maintenance" if record["starts_at"] else record["operation"],
            "status": node["state"],
            "message": f"{record['operation']}{window}: {record['reason']}",
            "notified_at": record["created_at"],
            "event_id": record["id"],
        }
        for node in record["nodes"]
    ]


STEPS: dict[str, Callable[[argparse.Namespace], Document]] = {
    step.__name__: step
    for step in (
        reset_gpus,
        return_node_maintenance,
        return_rack_maintenance,
        request_host_replacement,
        query_maintenance_events,
        query_repair_history,
        query_planned_notifications,
        query_failure_notifications,
    )
}


def main() -> int:
    """Print the document of one step. The exit code is 1 where the API refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--region", default="")
    parser.add_argument("--machine-id", default="")
    parser.add_argument("--rack-id", default="")
    parser.add_argument("--patience", type=float, default=540.0, help="seconds until an operation must have ended")
    options = parser.parse_args()
    try:
        document = {"success": True, **STEPS[options.step](options)}
    except Refused as refusal:
        document = {"success": False, "error": str(refusal)}
    sys.stdout.write(json.dumps({"platform": "assay", "test_name": options.step, **document}, indent=1) + "\n")
    return 0 if document["success"] else 1


if __name__ == "__main__":
    sys.exit(main())
