"""Parses what other tools say of nodes and jobs: health reports, objects of Kubernetes, ended jobs of Slurm. Pure.

Each becomes an alert with labels, so that one mapping in git says what any of them means. A body is one of:

- `{"signals": [{"source": "gpud", "node": "n1", "part": "gpu3", "class": "xid", "severity": "fatal", "until": TIME,
  "text": "…"}]}`. A report with `job` and `nodes` (`n[1-8]`) tells of a job's end: `end` says how, `text` may be a line
  of NCCL. `until` in the past says that it is over.
- Nodes, Events and Pods as `kubectl get -o json` prints them. https://kubernetes.io/docs/reference/node/node-status/
- Jobs as `scontrol show job JOB --json` prints them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.adapters.kubernetes.cordon import CONDITION_TYPE, DOMAIN
from assay.adapters.prometheus.alerts import MAX_ALERTS, ToolSignal
from assay.adapters.slurm.client import MAX_HOSTS, parse_jobs
from assay.model.errors import AssayError
from assay.model.outside_documents import describe_mistakes
from assay.model.text.lists import expand_node_set

Word = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f]+$")]
JOB_NODE_KEY = "nodes"
"""The label with the nodes of a job, separated by commas."""
PROBLEM_WHEN_NOT_TRUE = "Ready"
"""The condition of Kubernetes that is well when it is true; all others name a problem."""


class HealthReport(BaseModel):
    """What a tool says of a node, a part of it, or a job."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    source: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
    node: str = Field(default="", max_length=256)
    nodes: str = Field(default="", max_length=65536)
    job: str = Field(default="", max_length=256)
    end: str = Field(default="", max_length=256)
    part: str = Field(default="", max_length=128)
    fault_class: Word = Field(alias="class")
    severity: str = Field(default="", max_length=64)
    at: datetime | None = None
    until: datetime | None = None
    text: str = Field(default="", max_length=4096)


def parse_signals(body: bytes, now: datetime) -> list[ToolSignal]:
    """Return what a body says. Raises AssayError, whose message shows nothing of the body but a path."""
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise AssayError("no signals: the body is no object")
        signals = list(_read(document, now))
    except ValidationError as error:
        raise AssayError(f"no signals: {describe_mistakes(error, 'the body')}"[:600]) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AssayError(
            f"no signals: {type(error).__name__} in what is no report, list of Kubernetes or job"
        ) from None
    if len(signals) > MAX_ALERTS:
        raise AssayError(f"{len(signals)} signals at once; send at most {MAX_ALERTS}")
    return signals


def _read(document: Mapping[str, Any], now: datetime) -> Iterator[ToolSignal]:
    if "signals" in document:
        yield from (_read_report(HealthReport.model_validate(each), now) for each in document["signals"])
    elif "jobs" in document:
        yield from _read_slurm_jobs(document, now)
    else:
        readers = {"Node": _read_node, "Event": _read_event, "Pod": _read_pod}
        for thing in document["items"] if document["kind"].endswith("List") else [document]:
            yield from readers[thing["kind"]](thing)


def _read_report(report: HealthReport, now: datetime) -> ToolSignal:
    nodes = ",".join(expand_node_set(report.nodes, MAX_HOSTS)) if report.nodes else ""
    labels = {"node": report.node, "part": report.part, "class": report.fault_class, "severity": report.severity}
    labels |= {"job": report.job, "end": report.end, JOB_NODE_KEY: nodes}
    is_over = report.until is not None and _in_utc(report.until) <= now
    return _make(report.source, report.fault_class, labels, report.text, report.at or now, is_over, report.until)


def _read_node(node: Mapping[str, Any]) -> Iterator[ToolSignal]:
    """Yield each condition of a node, those that are well as resolved."""
    for each in node["status"].get("conditions") or ():
        kind, status = each["type"], each["status"]
        if kind == CONDITION_TYPE or kind.startswith(DOMAIN):
            continue  # assay's own word
        is_well = status == "True" if kind == PROBLEM_WHEN_NOT_TRUE else status != "True"
        labels = {"node": node["metadata"]["name"], "condition": kind, "reason": each.get("reason", "")}
        at = datetime.fromisoformat(each["lastTransitionTime"])
        yield _make("kubernetes", kind, labels, each.get("message", ""), at, is_well)


def _read_event(event: Mapping[str, Any]) -> Iterator[ToolSignal]:
    """Yield a warning about a node."""
    about = event.get("involvedObject") or event["regarding"]
    reporter = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    if about["kind"] == "Node" and event["type"] == "Warning" and not reporter.startswith(DOMAIN):
        labels = {"node": about["name"], "event": event["reason"], "reporter": reporter}
        at = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
        text = event.get("message") or event.get("note") or ""
        yield _make("kubernetes", event["reason"], labels, text, datetime.fromisoformat(at), False)


def _read_pod(pod: Mapping[str, Any]) -> Iterator[ToolSignal]:
    """Yield the end of a pod that failed: the word of the kubelet, or that of its first container that failed."""
    status, meta = pod["status"], pod["metadata"]
    if status.get("phase") == "Failed" and pod["spec"].get("nodeName"):
        ends = [each.get("state", {}).get("terminated") for each in status.get("containerStatuses") or ()]
        bad: Mapping[str, Any] = next((end for end in ends if end and end.get("exitCode")), {})
        at = bad.get("finishedAt") or meta["creationTimestamp"]
        end, code = status.get("reason") or bad.get("reason") or "Failed", bad.get("exitCode", "")
        labels = {"job": f"{meta['namespace']}/{meta['name']}", "end": end, JOB_NODE_KEY: pod["spec"]["nodeName"]}
        text = f"pod {labels['job']} ended: {end}{f', exit code {code}' if code else ''}"
        yield _make("kubernetes", end, labels, text, datetime.fromisoformat(at), False)


def _read_slurm_jobs(document: Mapping[str, Any], now: datetime) -> Iterator[ToolSignal]:
    for job, raw in zip(parse_jobs(document), document["jobs"], strict=True):
        at = datetime.fromtimestamp(job.end_time, UTC) if job.end_time else now
        for end in sorted(job.job_state):
            labels = {"job": str(job.job_id), "end": end, JOB_NODE_KEY: ",".join(job.nodes)}
            labels["node"] = str(raw.get("failed_node") or "")
            yield _make("slurm", end, labels, f"job {job.job_id} of {job.user_name} ended: {end}", at, False)


def _make(
    source: str,
    name: str,
    labels: Mapping[str, str],
    text: str,
    at: datetime,
    is_over: bool,
    until: datetime | None = None,
) -> ToolSignal:
    """Return a signal as an alert. The same thing said again has the same fingerprint."""
    signal_labels = {"source": source, "alertname": f"{source} {name}"} | {
        key: value for key, value in labels.items() if value
    }
    same = [signal_labels.get(key, "") for key in ("source", "alertname", "node", "part", "job", JOB_NODE_KEY)]
    return ToolSignal(
        status="resolved" if is_over else "firing",
        labels=signal_labels,
        annotations={"summary": text[:4096]},
        startsAt=_in_utc(at),
        fingerprint=hashlib.sha256(json.dumps(same).encode()).hexdigest()[:32],
        source=source,
        until=None if until is None or is_over else _in_utc(until),
    )


def _in_utc(at: datetime) -> datetime:
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
