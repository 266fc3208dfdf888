"""The action `gpu-reset`: resets the GPUs that faults or a person name, with playbooks/gpu_reset.yml; without any, all.

Only the jobs on these GPUs are ended: the control group of each process names its job. Where one names none, all jobs
of the node are. Proof: each GPU answers, and shows nothing that a reset cures. The ladder answers what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from assay.act.actions.action import (
    ActionContext,
    EffectFacts,
    EffectIntent,
    EffectVerification,
    find_action_effort,
    wait_until,
)
from assay.act.loop.projections import read_node_states
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.gpu_occupancy import GPU_PROBE_S
from assay.adapters.scheduler import EndsJobs
from assay.model.entries.node_entries import MoveEntry
from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.faults.fault_record import FaultRecord
from assay.observe.transports.transport import run_remote_probe

patience_s = 300.0
undone_by = ""
"""A reset cannot be undone. Checks that passed before it no longer count."""
JOB_OF_GROUP = re.compile(r"\bjob_(\d+)\b|pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
"""A job of Slurm, or a pod of Kubernetes, in the path of a control group (cgroups 1 and 2)."""
CURED = {("recovery_action",): "none", ("remap", "pending"): False, ("ecc", "volatile", "uncorrected"): 0}
"""What a reset cures, and how it reads afterwards."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Name the GPUs, and read their persistence mode and their jobs. Raises AssayError for others than NVIDIA's."""
    slots = _find_slots(context, intent)
    pci, seen = context.fleet.spec_of(intent.node).gpus.pci, _read_gpus(context, intent.node)
    modes = {pci[slot]: read_at_path(seen.get(pci[slot], {}), ("persistence",)) for slot in slots}
    jobs, unknown = _find_jobs(seen, [pci[slot] for slot in slots])
    return {
        "gpus": slots,
        "persistence": {address: bool(mode.value) for address, mode in modes.items() if mode.kind == "value"},
        "jobs": jobs,
        "unknown": unknown,
    }


def run(context: ActionContext, intent: EffectIntent) -> None:
    """End the jobs on the GPUs, wait until they are free, and reset them in one command."""
    slots, modes = _find_slots(context, intent), dict(intent.before.get("persistence", {}))
    addresses = [context.fleet.spec_of(intent.node).gpus.pci[slot] for slot in slots]
    _end_jobs(context, intent, addresses)
    persistent = [address for address in addresses if modes.get(address, True)]
    run_playbook(
        context, intent, "gpu_reset.yml", {"gpu_reset_addresses": addresses, "gpu_reset_persistent": persistent}
    )


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if every GPU answers, and shows nothing that a reset cures."""
    slots = _find_slots(context, intent)
    pci, seen = context.fleet.spec_of(intent.node).gpus.pci, _read_gpus(context, intent.node)
    faults = [fault.subject.rpartition("/")[2] for fault in _find_causes(context, intent)[1]]
    parts = [*dict.fromkeys([*(f"gpu{slot}" for slot in slots), *faults])]
    facts: EffectFacts = {"parts": parts, "jobs": intent.before.get("jobs", [])}
    left = [text for slot in slots for text in _list_ills(slot, seen.get(pci[slot], {"failed": "it does not answer"}))]
    names = ", ".join(f"gpu{slot}" for slot in slots)
    if left:
        return EffectVerification(False, "; ".join(left), facts)
    return EffectVerification(True, f"{names}: reset, and nothing of what a reset cures is left", facts)


def _find_slots(context: ActionContext, intent: EffectIntent) -> list[int]:
    """Return the slots of the GPUs to reset: those of the decision's faults or operation, else all.

    Raises AssayError if GPUs of this vendor cannot be reset so.
    """
    gpus = context.fleet.spec_of(intent.node).gpus
    if gpus.vendor != "nvidia":
        raise AssayError(f"assay resets GPUs of NVIDIA only, and its are of {gpus.vendor}", where=intent.node)
    if known := intent.before.get("gpus"):
        return [int(slot) for slot in known]
    causes, faults = _find_causes(context, intent)
    named = {fault.subject.rpartition("/")[2] for fault in faults}
    for entry in context.ledger.entries(intent.node, [MoveEntry.kind]):
        order = MoveEntry.read(entry)
        if entry.id in causes and order.operation:
            named |= {f"gpu{slot}" for slot in order.operation.gpus}
    slots = [slot for slot in range(gpus.count) if f"gpu{slot}" in named]
    return slots if slots and not gpus.reset_together else list(range(gpus.count))


def _find_causes(context: ActionContext, intent: EffectIntent) -> tuple[set[str], list[FaultRecord]]:
    """Return the ids of what the decision is about, and the faults among them."""
    state = read_node_states(context.ledger).get(intent.node)
    decision = state.decisions.get(intent.decision) if state else None
    ids = {ident for cause in (decision.causes if decision else ()) for ident in (cause.fault_ids or (cause.id,))}
    return ids, [fault for fault in state.faults if fault.id in ids] if state else []


def _read_gpus(context: ActionContext, node: str) -> dict[str, Any]:
    channels = run_remote_probe(context.fleet.nodes[node], ["--areas", "gpu"], GPU_PROBE_S)
    devices = read_at_path(channels, ("probe", "gpu", "devices"))
    if devices.kind != "value" or not isinstance(devices.value, dict):
        raise AssayError(f"it gives no reading of its GPUs: {devices.reason}", where=node)
    return dict(devices.value)


def _list_ills(slot: int, gpu: dict[str, Any]) -> Iterator[str]:
    """Yield what is still wrong with a GPU; what this driver cannot read is no proof of harm."""
    if read_at_path(gpu, ("uuid",)).kind != "value":
        yield f"gpu{slot} does not answer: {gpu.get('failed') or gpu.get('absent') or 'no reading'}"
    for path, healthy in CURED.items():
        reading = read_at_path(gpu, path)
        if reading.kind == "value" and reading.value != healthy:
            yield f"gpu{slot}: {'.'.join(path)} is still {reading.value}"


def _find_jobs(seen: dict[str, Any], addresses: list[str]) -> tuple[list[str], list[int]]:
    """Return the jobs whose processes hold these GPUs, and the processes of which nobody knows the job."""
    jobs, unknown = set[str](), set[int]()
    for address in addresses:
        processes = seen.get(address, {}).get("processes", {})
        pids, groups = (read_at_path(processes, (name,)) for name in ("pids", "cgroups"))
        for number, pid in enumerate(pids.value if pids.kind == "value" else ()):
            match = JOB_OF_GROUP.search(groups.value[number]) if groups.kind == "value" else None
            if match:
                jobs.add(match[1] or match[2].replace("_", "-"))
            else:
                unknown.add(pid)
    return sorted(jobs), sorted(unknown)


def _end_jobs(context: ActionContext, intent: EffectIntent, addresses: list[str]) -> None:
    """End the jobs that hold these GPUs, and wait until no process does. Raises AssayError if one stays."""

    def find_left() -> tuple[list[str], list[int]]:
        return _find_jobs(_read_gpus(context, intent.node), addresses)

    jobs, unknown = find_left()
    if not jobs and not unknown:
        return
    scheduler = context.scheduler(intent.node)
    if jobs and not unknown and isinstance(scheduler, EndsJobs):
        scheduler.end_jobs(intent.node, jobs)
    else:
        scheduler.drain(intent.node, intent.reason, now=True)
    patience = find_action_effort(context.fleet, intent.action).deadline_s / 2
    wait_until(lambda: True if find_left() == ([], []) else None, patience, "no process holds the GPUs", intent.node)
