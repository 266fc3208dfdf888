"""The action `collect`: keeps what a vendor asks for about a failure in one archive, before a restart destroys it.

`reports/diagnostics/NODE-EFFECT.zip` holds the reports of NVIDIA's and AMD's tools, the kernel's log, the last part of
the serial console, the counters of the fabric, and the BMC's logs and readings. Each member has its own time and size;
`manifest.json` says what is missing or cut, and why. Secrets and what shows a customer's work are taken out. If it
fails, the repair goes on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.loop.projections import read_node_states
from assay.act.remedies.dossier_build import build_zip, load_secrets, locate_diagnostics, read_zip
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.declare.secret_detection import SECRET_SHAPES
from assay.model.decision import PERSON_RULE, ROLLOUT_RULE, find_rule_name
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.reading import MAX_REPORT_BYTES, ReadingTree, failed, parse_reading
from assay.model.text.lists import format_list
from assay.model.text.safe_text import MIN_SECRET_LENGTH, REDACTION, redact
from assay.observe.evidence_collector import read_bmc_channel
from assay.observe.evidence_store import write_atomically
from assay.observe.logs.console_log import CONSOLES, format_line, search_console
from assay.observe.transports.transport import read_diagnostics, run_remote_probe

patience_s = 0.0
undone_by = ""
"""One file more does no harm."""
SCHEMA = 1
MAX_ARCHIVE_BYTES = 32 * 2**20
READINGS_S, BMC_S = 30.0, 15.0
LIVE_AREAS = "host,gpu,hca,nic,nvme,aer,pci,memory,kernel_log"
CONSOLE_LINES, CONSOLE_BYTES = 4000, 2**18
MANIFEST = "manifest.json"
NOTHING = failed("the probe says nothing of it")
CUSTOMER_TRACES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"(\bname=)[^,\s\"\\]+",  # the process of an XID, and of what the kernel killed
        r"(\b[Cc]omm: )[^\s\"\\]+",  # the process of a kernel's trace
        r"(\b(?:task|task_memcg|oom_memcg)=)[^,\s\"\\]+",
        r"(Killed process \d+ \()[^)\"\\]*",
        r"(^\s+Name\s+: ).*$",  # a process of `nvidia-smi --query`
        r"(/(?:home|users?|scratch|work|projects?|data)/)[^\s:,;\"\\')]+",
        r"()\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b",
        r"()-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?s:.*?)(?:-----END [A-Z0-9 ]*-----|\Z)",
    )
)
"""What shows a customer's work or people in reports and logs, after the text that stays."""


@frozen
class Member:
    """One member: its content, empty where there is none, and `note`: why it is missing or not whole."""

    content: bytes = b""
    note: str = ""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read from the ledger which faults the archive is about. Without a failure, there is nothing to keep."""
    state = read_node_states(context.ledger).get(intent.node)
    decision = state.decisions.get(intent.decision) if state else None
    faults = [
        {"fault": fault.id, "class": fault.fault_class, "subject": fault.subject, "first_seen": fault.first_seen}
        for fault in (state.faults if state else ())
        if fault.is_open
    ]
    is_order = decision is not None and find_rule_name(decision.rule) in (PERSON_RULE, ROLLOUT_RULE)
    return {"faults": faults, "wanted": bool(faults) or not is_order}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Collect the members side by side, and write the archive."""
    if not intent.before.get("wanted", True):
        return
    load_secrets(context, intent.node)
    with ThreadPoolExecutor(2) as workers:
        bmc = workers.submit(lambda: dict(_read_bmc(context, intent.node)))
        members = {**dict(_read_node(context, intent.node)), **bmc.result(), **_read_console(context, intent.node)}
    about = {"serial": context.fleet.nodes[intent.node].serial, "at": context.clock.now().isoformat()}
    content = pack_members(intent, about, members, _list_customer_words(context, intent.node))
    write_atomically(locate_diagnostics(context.reports, intent.node, intent.effect), content)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the archive is whole and belongs to this effect. Whatever cannot be read is not done: nothing waits."""
    if not intent.before.get("wanted", True):
        return EffectVerification(True, "a person or a rollout asked for it, and no fault is open: nothing to keep")
    path = locate_diagnostics(context.reports, intent.node, intent.effect)
    try:
        content = path.read_bytes()
        manifest = json.loads(read_zip(content)[MANIFEST])
    except (OSError, ValueError, KeyError) as error:
        return EffectVerification(False, f"no archive: {error}")
    if manifest.get("effect") != intent.effect:
        return EffectVerification(False, "this archive belongs to another effect")
    members: Mapping[str, Mapping[str, Any]] = manifest["members"]
    lacking = [name for name, member in members.items() if not member["bytes"]]
    digest, shown = hashlib.sha256(content).hexdigest(), str(path.relative_to(context.reports.parent))
    count = f"{len(members) - len(lacking)} of {len(members)} reports"
    reason = f"{shown}: {count}{f', without {format_list(lacking, 3)}' if lacking else ''}"
    facts = {"path": shown, "sha256": digest, "bytes": len(content), "lacking": lacking, "at": manifest["at"]}
    return EffectVerification(True, reason, facts)


def pack_members(
    intent: EffectIntent, about: Mapping[str, Any], members: Mapping[str, Member], words: Collection[str] = ()
) -> bytes:
    """Return the archive, the manifest first. Where it is too large, its largest members are left out, and it says so.

    `words`: names of customers and of their jobs, which are taken out too.
    """
    cleaned = {name: (*_redact(member.content, words), member.note) for name, member in members.items()}
    while True:
        listed = {
            name: {"bytes": len(content), "redacted": redacted, "note": note}
            for name, (content, redacted, note) in cleaned.items()
        }
        manifest = {"schema": SCHEMA, **about, "members": listed, "faults": intent.before.get("faults", [])}
        manifest |= {field: getattr(intent, field) for field in ("effect", "node", "decision", "reason")}
        text, _ = _redact(json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode(), words)
        packed = build_zip({MANIFEST: text, **{name: content for name, (content, *_) in cleaned.items() if content}})
        largest = max(cleaned, key=lambda name: len(cleaned[name][0]))
        if len(packed) <= MAX_ARCHIVE_BYTES or not cleaned[largest][0]:
            return packed
        cleaned[largest] = (b"", 0, f"left out: the archive may have {MAX_ARCHIVE_BYTES >> 20} MiB")


def _redact(content: bytes, words: Collection[str]) -> tuple[bytes, int]:
    """Return a content without secrets and traces of customers, and how often something was removed."""
    text = redact(content[:MAX_REPORT_BYTES].decode(errors="replace"))
    named = [re.compile(rf"()\b{re.escape(word)}\b") for word in words if len(word) >= MIN_SECRET_LENGTH]
    shapes = [shape.pattern for shape in SECRET_SHAPES if any(needle in text for needle in shape.needles)]
    count = text.count(REDACTION)
    for pattern in (*CUSTOMER_TRACES, *named, *shapes):
        kept = r"\g<1>" if pattern not in shapes else ""
        text, times = pattern.subn(f"{kept}{REDACTION}", text)
        count += times
    return text.encode(), count


def _list_customer_words(context: ActionContext, node: str) -> set[str]:
    """Return the names of those who may use the node, and of the jobs that run there, with their owners."""
    access = context.fleet.policy.access
    pool = context.fleet.nodes[node].pool
    words = {name for name, rights in (access.visitors if access else {}).items() if pool in rights.pools}
    with suppress(AssayError):  # where its scheduler does not answer, the traces are taken out all the same
        words |= {word for job in context.scheduler(node).list_jobs(node) for word in (job.owner, job.name)}
    return words


def _read_node(context: ActionContext, name: str) -> Iterator[tuple[str, Member]]:
    """Yield what the node says: first what takes seconds, then the reports of the vendors' tools."""
    node = context.fleet.nodes[name]
    readings = run_remote_probe(node, ["--areas", LIVE_AREAS], READINGS_S)["probe"]
    silent = parse_reading(readings)
    reports = read_diagnostics(node, readings if silent else None)
    yield "kernel.log", _make_log({"lines": readings} if silent else readings.pop("kernel_log", NOTHING))
    yield "fabric-counters.json", _make_json(readings if silent else readings.get("hca", NOTHING))
    yield "node.json", _make_json(readings)
    yield from ((name, _unpack_report(report)) for name, report in reports.items())


def _make_log(log: ReadingTree) -> Member:
    """Return the kernel's log as text, with the seconds since the boot."""
    leaf = parse_reading(log) or parse_reading(log.get("lines", NOTHING))
    if leaf is None or leaf.kind != "value":
        return Member(note=leaf.reason if leaf else NOTHING["failed"])
    missed = log.get("missed", {}).get("value", 0)
    lines = "".join(f"[{line['t_s']:.6f}] {line['text']}\n" for line in leaf.value)
    return Member(lines.encode(), f"{missed} lines are missing" if missed else "")


def _unpack_report(answer: ReadingTree) -> Member:
    """Return a report that the probe packed."""
    reading = parse_reading(answer)
    if reading is None or reading.kind != "value":
        return Member(note=reading.reason if reading else "the probe gives no reading of it")
    try:
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        content = unpacker.decompress(base64.b64decode(reading.value["gzip"]), MAX_REPORT_BYTES)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        return Member(note=f"what the probe sent cannot be unpacked: {error}")
    return Member(content, str(reading.value.get("note", "")))


def _read_bmc(context: ActionContext, name: str) -> Iterator[tuple[str, Member]]:
    """Yield the logs of the BMC, its system event log among them, and its readings."""
    fleet = context.fleet
    quirks = BmcQuirkSet(fleet.quirks.values())
    tree = read_bmc_channel(fleet.nodes[name], fleet.root, BMC_S, quirks=quirks)
    yield "bmc.json", _make_json({branch: below for branch, below in tree.items() if branch != "events"})
    events = parse_reading(tree) or parse_reading(tree.get("events", {}))
    if events is None or events.kind != "value":
        yield "bmc-logs.json", Member(note=events.reason if events else "the BMC says nothing of its logs")
        return
    logs = {log: leaf.get("failed", "") for log, leaf in tree.get("event_log", {}).get("logs", {}).items()}
    for log, trouble in logs.items():
        own = [event for event in events.value if event["log"] == log]
        yield f"bmc-log-{log.replace(' ', '-')}.json", Member(note=trouble) if trouble else _make_json(own)


def _read_console(context: ActionContext, name: str) -> Mapping[str, Member]:
    """Return the last part of the serial console, where the inventory says how it is recorded."""
    if context.fleet.nodes[name].settings.bmc_console is None:
        return {}
    try:
        lines = search_console(context.home / CONSOLES, name, limit=CONSOLE_LINES).lines
    except AssayError as error:
        return {"console.log": Member(note=error.what)}
    text = "".join(f"\n{format_line(line)}" for line in lines)
    return {"console.log": Member(text.encode()[-CONSOLE_BYTES:].partition(b"\n")[2])}  # whole lines: a name may be cut


def _make_json(document: Any) -> Member:
    """Return a document as a member; a leaf that is no value is no content, but a note."""
    reading = parse_reading(document) if isinstance(document, dict) else None
    if reading is not None and reading.kind != "value":
        return Member(note=reading.reason)
    return Member(json.dumps(document, indent=1, ensure_ascii=False).encode())
