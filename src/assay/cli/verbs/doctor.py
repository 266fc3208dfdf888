"""`assay doctor`: what this machine needs so that assay can work on a fleet from it, and what of that is missing.

It reaches no other machine.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import BaseModel

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.declare.repository.git import read_revision
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.fabric.scan import find_discover_command, find_facts_commands
from assay.model.errors import EXTRA_OF_MODULE, AssayError, list_missing_modules
from assay.model.facts import fact
from assay.model.specs.credential_reference import CredentialReference
from assay.model.text.lists import format_count, format_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.model.fleet import Fleet


doctor_app = typer.Typer(add_completion=False)
ALWAYS_NEEDED = {"ansible": "playbooks that act on nodes", "duckdb": "the history of runs, trends and reports"}
"""Extras that every fleet uses, and for what."""
SLURM_PROGRAMS = ("sinfo", "squeue", "scontrol", "srun", "sbatch", "scancel")
LEAST_FREE_BYTES = 2**30


@doctor_app.command()
def doctor(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show what this machine lacks to work on this fleet: packages, programs, secrets, disk, the ledger.

    This reads secrets, as a pass does, and shows none. It reaches no node.

    Exit codes: 0 nothing is missing; 1 something is; 2 the fleet repository cannot be read.
    """
    from assay.lab.optional_parts import list_parts

    workspace = Workspace(fleet.resolve())
    needs, unused = list(list_needs(workspace)), find_unused_extras(workspace.fleet)
    lab = [str(part) for part in list_parts(workspace.fleet) if part.fix]
    print_answer(DoctorAnswer(needs, unused), form, _format_text(needs, unused, lab))
    sys.exit(1 if any(need.trouble for need in needs) else 0)


def _format_text(needs: Sequence[Need], unused: Sequence[str], lab: Sequence[str]) -> list[str]:
    lines = []
    for need in needs:
        mark = "missing" if need.trouble else "ok     "
        lines.append(f"{mark}  {need.name} ({need.used_for})" + (f": {need.trouble}" if need.trouble else ""))
        if need.trouble and need.fix:
            lines.append(f"         → {need.fix}")
    if unused:
        lines.append(f"not installed, and not needed by this fleet: {', '.join(unused)}")
    lines += [f"only virtual in the lab: {part}" for part in lab]
    missing = sum(bool(need.trouble) for need in needs)
    lines.append(f"{format_count(len(needs), 'thing')} needed: {f'{missing} missing' if missing else 'all there'}")
    return lines


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that is needed, and for what. `trouble`: what is wrong with it, "" if it is there."""

    name: str
    """What is needed: a program, an extra, a folder or a secret."""
    used_for: str
    """For what."""
    trouble: str = ""
    fix: str = ""
    """What to do; "" if there is nothing to do."""


@fact
class DoctorAnswer:
    """What this fleet needs of this machine, and what of it is missing."""

    needs: list[Need]
    """What is needed; with anything missing, the exit code is 1."""
    unused_extras: list[str]
    """The extras of assay that are not installed, and that this fleet does not need."""


def list_needs(workspace: Workspace) -> Iterator[Need]:
    """Yield what the fleet needs of this machine. Raises AssayError for a fleet that cannot be read."""
    fleet = workspace.fleet
    yield from _list_extras(fleet)
    yield from _list_programs(fleet)
    yield _look_at_git(workspace)
    yield from _look_at_data(workspace)
    yield from _look_at_secrets(fleet)


def find_unused_extras(fleet: Fleet) -> list[str]:
    """Return the extras that are not installed, and that the fleet does not need."""
    return [
        extra
        for extra in sorted({*EXTRA_OF_MODULE.values()} - {*_find_used_extras(fleet)})
        if list_missing_modules(extra)
    ]


def _list_extras(fleet: Fleet) -> Iterator[Need]:
    for extra, used_for in sorted(_find_used_extras(fleet).items()):
        missing = list_missing_modules(extra)
        trouble = f"not installed: {', '.join(missing)}" if missing else ""
        yield Need(f"extra {extra}", used_for, trouble, f"pip install 'assay-fleet[{extra}]'")


def _find_used_extras(fleet: Fleet) -> dict[str, str]:
    used = dict(ALWAYS_NEEDED)
    nodes = fleet.nodes.values()
    if any(node.settings.workloads == "kubernetes" for node in nodes):
        used["kubernetes"] = "nodes on which Kubernetes places pods"
    if fleet.provisionings or any(node.settings.agent_token for node in nodes):
        used["web"] = "`assay serve`: agents, machines that boot"
    return used


def _list_programs(fleet: Fleet) -> Iterator[Need]:
    settings = [node.settings for node in fleet.nodes.values()]
    transports = Counter("" if setting.reach or setting.metrics else setting.transport for setting in settings)
    in_slurm = sum(setting.workloads == "slurm" for setting in settings)
    yield _look_for("git", "plans, and the commit that is acted on", "install git")
    if transports["ssh"]:
        yield _look_for("ssh", f"readings of {format_count(transports['ssh'], 'node')}", "install OpenSSH's client")
    if transports["kubernetes"]:
        many = format_count(transports["kubernetes"], "node")
        yield _look_for("kubectl", f"readings of {many} through their pods", "install kubectl")
    if in_slurm or transports["slurm"]:
        fix = "install Slurm's client programs, or work on a machine that submits jobs to the cluster"
        for program in SLURM_PROGRAMS:
            yield _look_for(program, f"{format_count(max(in_slurm, transports['slurm']), 'node')} in Slurm", fix)
    trusts = [policy.commits for policy in fleet.policies.values() if policy.commits]
    if any(trust.signed for trust in trusts):
        yield _look_for("ssh-keygen", "signatures of commits", "install OpenSSH's client")
    if any(trust.signed and trust.forge_keys for trust in trusts):
        yield _look_for("gpg", "merges that the forge signed", "install GnuPG")
    if not fleet.is_lab:
        yield from _list_scheduled_programs(fleet)


def _list_scheduled_programs(fleet: Fleet) -> Iterator[Need]:
    """Yield what the jobs of the schedules start on this machine."""
    jobs = [job for schedules in fleet.schedules.values() for job in schedules.schedules.values()]
    used: dict[str, str] = {}
    if any(job.does == "fabric-scan" for job in jobs):
        for design in fleet.designs.values():
            commands = [find_discover_command(fleet, design), *find_facts_commands(fleet, design).values()]
            used |= {words[0]: f"scans of the fabric {design.name}" for words in commands if words}
    for name in sorted({job.search.workload for job in jobs if job.search} & fleet.collective_workloads.keys()):
        workload = fleet.collective_workloads[name]
        calls = [call.command[0] for call in (workload.pair, workload.alone, workload.together) if call]
        used |= {word: f"collectives by {name}" for word in calls if "{" not in word}
    if any(anchor.startswith("rfc3161:") for job in jobs for anchor in job.anchors):
        used["openssl"] = "time stamps of seals"
    for program, used_for in used.items():
        yield _look_for(program, used_for, f"install {program}: it starts on this machine, where assay runs")


def _look_for(program: str, used_for: str, fix: str) -> Need:
    return Need(program, used_for, "" if shutil.which(program) else "not on the PATH", fix)


def _look_at_git(workspace: Workspace) -> Need:
    commit, differs = read_revision(workspace.root)
    used_for = "what is acted on"
    if not commit:
        return Need("commit", used_for, "the fleet repository has no commit", "git init, git add, git commit")
    trouble = "files differ from it: assay acts on what is committed" if differs else ""
    return Need(f"commit {commit[:12]}", used_for, trouble, "commit them, or take them back")


def _look_at_data(workspace: Workspace) -> Iterator[Need]:
    where = str(workspace.ledger_location)
    try:
        workspace.ledger_for_reading.close()
        yield Need("ledger", where)
    except AssayError as error:
        is_new = not isinstance(workspace.ledger_location, str) and not workspace.ledger_location.exists()
        yield Need("ledger", f"{where}: none yet" if is_new else where, "" if is_new else error.what, error.fix)
    yield _look_at_folder(str(workspace.data_dir), "the ledger and evidence")
    yield _look_at_folder(str(workspace.reports_dir), "runs, their history and reports")


def _look_at_folder(folder: str, used_for: str) -> Need:
    there = folder
    while not os.path.exists(there):  # noqa: PTH110 — "" ends it
        there = os.path.dirname(there) or "."  # noqa: PTH120
    if not os.access(there, os.W_OK | os.X_OK):
        return Need(folder, used_for, f"nobody may write to {there} here", "run assay as its owner")
    free = shutil.disk_usage(there).free
    trouble = "" if free >= LEAST_FREE_BYTES else f"only {free / 2**20:.0f} MiB are free"
    return Need(folder, used_for, trouble, "make room, or prune: `assay prune`")


def _look_at_secrets(fleet: Fleet) -> Iterator[Need]:
    references: dict[str, CredentialReference] = {}
    users: dict[str, list[str]] = {}
    for user, reference in _list_references(fleet):
        key = reference.model_dump_json()
        references[key] = reference
        users.setdefault(key, []).append(user)
    for key, reference in references.items():
        trouble, fix = _try_secret(reference, fleet)
        yield Need(describe_reference(reference), format_list(users[key], 3), trouble, fix)


def _try_secret(reference: CredentialReference, fleet: Fleet) -> tuple[str, str]:
    try:
        if not read_secret(reference, fleet.root):
            return ("not set", f"export {reference.env}=…") if reference.env else ("empty", "write the secret there")
        if reference.file and stat.S_IMODE((fleet.root / reference.file).stat().st_mode) & 0o077:
            return "others on this machine may read it", f"chmod 600 {reference.file}"
    except AssayError as error:
        return error.what, error.fix or "make the file, or correct the reference"
    return "", ""


def _list_references(fleet: Fleet) -> Iterator[tuple[str, CredentialReference]]:
    """Yield each reference to a secret, with what refers to it. Nodes of a pool share their settings."""
    seen = set[int]()
    for node in fleet.nodes.values():
        if id(node.settings) not in seen:
            seen.add(id(node.settings))
            yield from ((f"pool {node.pool}", reference) for reference in _find_references(node.settings))
    used = {name: fleet.node_specs[name] for name in {node.spec for node in fleet.nodes.values()}}
    for kind in (used, fleet.ticket_routes, fleet.policies, fleet.monitorings, fleet.provisionings):
        for name, spec in sorted(kind.items()):
            yield from ((f"{spec.kind} {name}", reference) for reference in _find_references(spec))


def _find_references(value: Any) -> Iterator[CredentialReference]:
    if isinstance(value, CredentialReference):
        if not getattr(value, "sha256", ""):
            yield value
    elif isinstance(value, BaseModel):
        yield from _find_in_each(vars(value).values())
    elif isinstance(value, Mapping):
        yield from _find_in_each(value.values())
    elif isinstance(value, list | tuple):
        yield from _find_in_each(value)


def _find_in_each(values: Iterable[Any]) -> Iterator[CredentialReference]:
    for value in values:
        yield from _find_references(value)
