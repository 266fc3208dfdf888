"""Drafts the inventory of machines that were expected and are there, for people to review.

Writes a proposal as one commit on a branch of its own. The working folder and the index stay as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from assay.act.boot.matching import MachineMatch
from assay.declare.check import check_repository
from assay.declare.repository.git import read_git_error, resolve_commit, run_git
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.specs.machines import ExpectedMachine, ExpectedMachines

FIRST_STATE = "discovered"
HEAD = "# yaml-language-server: $schema=../specs/schemas/inventory.json\n"


def draft_inventory(fleet: Fleet, delivery: str, matches: Sequence[MachineMatch], earlier: str = "") -> str:
    """Return the inventory file of a delivery: the hosts that it has `earlier`, and the expected machines in `matches`.

    Raises AssayError for a machine whose serial number or certificate is not known: a MAC address is no proof.
    """
    declared = fleet.deliveries[delivery]
    machines = {machine.name: machine for machine in declared.machines}
    group = (yaml.safe_load(earlier) or {}).get(declared.pool) or {}
    hosts: dict[str, Any] = dict(group.get("hosts") or {})
    for match in matches:
        if match.seen.serial != machines[match.node].serial_number or not match.seen.fingerprint:
            fix = "assay discover --scan ADDRESS --login"
            raise AssayError(
                f"{match.node} cannot be proposed: nobody has read its serial number and certificate yet", fix=fix
            )
        hosts[match.node] = _draft_host(fleet, declared, machines[match.node], match)
    note = f"# Delivery {delivery}{f', order {declared.order}' if declared.order else ''}: drafted by assay discover.\n"
    return HEAD + note + yaml.safe_dump({declared.pool: {"hosts": hosts}}, sort_keys=False, allow_unicode=True)


def _draft_host(
    fleet: Fleet, delivery: ExpectedMachines, machine: ExpectedMachine, match: MachineMatch
) -> dict[str, Any]:
    """Return the variables of one host: what its pool does not give it already."""
    kind = {"node_spec": delivery.node_spec, "profile": delivery.profile, "site": delivery.site}
    pool = fleet.nodes_in_pool(delivery.pool)
    is_given = pool and all((node.spec, node.profile, node.site) == tuple(kind.values()) for node in pool)
    host: dict[str, Any] = {} if is_given else dict(kind)
    host |= {"rack": machine.rack, "u": machine.u, "serial_number": machine.serial_number}
    host |= {"bmc_address": match.seen.address, "bmc_mac": machine.bmc_mac, "mac": machine.mac}
    host |= {"bmc_fingerprint": match.seen.fingerprint, "hca_guids": machine.hca_guids}
    host |= {"pdu": machine.pdu, "endorsement_key_sha256": machine.endorsement_key_sha256}
    policy = next(iter(fleet.policies.values()), None)
    boots = any(provisioning.applies_to(delivery.pool) for provisioning in fleet.provisionings.values())
    if boots and policy is not None and FIRST_STATE in policy.states:
        host["lifecycle_start"] = FIRST_STATE  # assay starts it, so its way begins before its first start
    return {name: value for name, value in host.items() if value}


def read_committed_file(root: Path, path: str) -> str:
    """Return a file of the current commit, "" if it has none of this name."""
    run = run_git(root, "show", "--no-textconv", f"HEAD:{path}")
    return run.stdout.decode() if run.returncode == 0 else ""


@frozen
class ProposedCommit:
    """A commit, and the mistakes that `assay check` finds there and not before: people settle them before the merge."""

    commit: str
    mistakes: tuple[str, ...]


def propose_file(root: Path, branch: str, path: str, text: str, message: str) -> ProposedCommit:
    """Commit one file on a new branch above the current commit.

    Raises AssayError if the branch exists, or if git cannot commit.
    """
    if run_git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode == 0:
        fix = f"open its pull request, or delete it: git branch -D {branch}"
        raise AssayError(f"the branch {branch} exists already", where=str(root), fix=fix)
    base = resolve_commit(root, "HEAD")
    tree = _write_tree(root, base, path, text)
    commit = _git(root, "commit-tree", tree, "-p", base, "-m", message)
    _git(root, "update-ref", f"refs/heads/{branch}", commit, "")
    return ProposedCommit(commit, tuple(sorted(_list_mistakes(root, commit) - _list_mistakes(root, base))))


def _write_tree(root: Path, base: str, path: str, text: str) -> str:
    blob = _git(root, "hash-object", "-w", "--stdin", stdin=text.encode())
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "read-tree", base, environment=index)
        _git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environment=index)
        return _git(root, "write-tree", environment=index)


def _list_mistakes(root: Path, commit: str) -> set[str]:
    problems = check_repository(root, commit=commit).problems
    return {f"{problem.code}: {problem.message}" for problem in problems if problem.severity == "error"}


def _git(root: Path, *command: str, stdin: bytes = b"", environment: dict[str, str] | None = None) -> str:
    run = run_git(root, *command, stdin=stdin, environment=environment)
    if run.returncode:
        raise AssayError(f"git {command[0]} failed: {read_git_error(run)}", where=str(root), fix="see git's message")
    return run.stdout.decode().strip()
