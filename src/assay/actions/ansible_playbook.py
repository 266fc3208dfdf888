"""Runs one of the repository's playbooks on one node with ansible-runner. What it claims is proved elsewhere.

Everything of a run lies in `.assay/runner/<effect>/`, but for its environment, which is handed over in memory, and
for secrets that a task printed, which are covered.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from assay.actions import playbook_environment
from assay.actions.action import ActionContext, EffectIntent, UnfinishedAction, find_action_effort
from assay.fleet.fleet_loader import load_fleet
from assay.fleet.secret_detection import register_environment_secrets
from assay.fleet.secret_lookup import handover_variable, read_secret
from assay.ledger.leases_and_locks import hold_node_lock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.secret_redaction import redact, redact_bytes

CANCEL_POLL_S = 0.5


def run_playbook(ctx: ActionContext, intent: EffectIntent, name: str, variables: Mapping[str, Any]) -> None:
    """Run `playbooks/<name>` limited to the intent's node. Raises Trouble with what the failed tasks said.

    An end without trouble proves nothing, and neither does trouble: verify by reading the node. A run that was cut
    short (canceled, killed, past the action's deadline) is Unfinished: what it had begun is awaited, and may happen.
    """
    import ansible_runner

    playbook = ctx.fleet.root / "playbooks" / name
    if not playbook.exists():
        raise AssayError(f"there is no {playbook.relative_to(ctx.fleet.root)}", where=intent.node)
    listener = _PlaybookListener(ctx, intent)
    folder = ctx.home / "runner" / intent.effect
    folder.mkdir(parents=True, exist_ok=True)
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(folder),
        playbook=str(playbook),
        inventory=[str(path) for path in list_inventories(ctx.fleet.root)],
        limit=intent.node,
        extravars=dict(variables),
        envvars=_build_environment(folder, ctx.fleet.root),
        suppress_env_files=True,
        event_handler=listener.handle_event,
        quiet=True,
    )
    runner.config.command = [sys.executable, "-m", playbook_environment.__name__, *runner.config.command]
    runner.config.job_timeout = find_action_effort(ctx.fleet, intent.action).deadline_s
    runner.config.pexpect_timeout = CANCEL_POLL_S  # how often it looks whether it shall end
    register_environment_secrets(*list_credential_variables(ctx.fleet))
    try:
        with playbook_environment.pass_environment(
            runner.config.env | resolve_node_credentials(ctx.fleet, intent.node)
        ) as environment:
            runner.config.env = environment
            runner.run()
    finally:
        redact_files(folder)
    if runner.status == "failed" and listener.failure:
        raise AssayError(f"{name}: {listener.failure}", where=intent.node)
    if runner.status != "successful":
        _wait_for_orphaned_task(ctx, intent)
        raise UnfinishedAction(f"{name}: ansible-playbook ended {runner.status} in the middle", where=intent.node)


def _wait_for_orphaned_task(ctx: ActionContext, intent: EffectIntent) -> None:
    """Wait for the task that outlives its ansible-playbook: it holds the node's lock until its effect is over."""
    with hold_node_lock(ctx.home, intent.node, find_action_effort(ctx.fleet, intent.action).deadline_s):
        return


def list_credential_variables(fleet: Fleet) -> set[str]:
    """Return the environment variables that the inventory names as holding credentials."""
    references = [node.settings.bmc_credentials for node in fleet.nodes.values()]
    return {reference.env for reference in references if reference and reference.env}


def resolve_node_credentials(fleet: Fleet, name: str) -> dict[str, str]:
    """Return the variable in which a node's credentials are handed over, so that nobody need fetch them once more.

    Where they cannot be had, none: a playbook that needs them will say so.
    """
    reference = fleet.nodes[name].settings.bmc_credentials
    if reference is None:
        return {}
    try:
        return {handover_variable(reference): read_secret(reference, fleet.root)}
    except AssayError:
        return {}


def redact_files(folder: Path) -> None:
    """Cover every secret that this process knows in the files below a folder."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if (covered := redact_bytes(content)) != content:
                path.write_bytes(covered)


def list_inventories(root: Path) -> list[Path]:
    """Return the repository's inventory and, where a lab is up, what that lays over it."""
    overlay = root / ".assay" / "lab" / "inventory.yml"
    return [root / "inventory", *([overlay] if overlay.exists() else [])]


def find_task_node(variables: Mapping[str, Any]) -> tuple[Fleet, Node]:
    """Return the fleet and the node of a task, from Ansible's own variables. Raises Trouble for a foreign host.

    The fleet repository is the parent of the playbook's folder.
    """
    root = Path(variables["playbook_dir"]).parent
    fleet, name = _read_once(root), variables["inventory_hostname"]
    if name not in fleet.nodes:
        raise AssayError(f"the inventory of {root} has no node {name}")
    return fleet, fleet.nodes[name]


def preload_fleet(plugin: str) -> None:
    """Read the fleet of a collection's plugin file where Ansible loads it first: each task of a host is a fork of that.

    Nothing where it is not read that way: the task itself will say why.
    """
    with suppress(AssayError, OSError, IndexError):
        _read_once(Path(plugin).parents[7])


@cache
def _read_once(root: Path) -> Fleet:
    return load_fleet(root, list_inventories(root)[1:])


def _build_environment(folder: Path, root: Path) -> dict[str, str]:
    here = Path(sys.executable).parent
    found = {"ANSIBLE_CONFIG": root / "ansible.cfg", "ANSIBLE_VAULT_PASSWORD_FILE": None}
    named = {name: os.environ.get(name) or path for name, path in found.items()}
    return {
        "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        **{name: str(Path(path).absolute()) for name, path in named.items() if path and Path(path).exists()},
    }


class _PlaybookListener:
    """Tells what the playbook is doing, and keeps what its failures said."""

    def __init__(self, ctx: ActionContext, intent: EffectIntent) -> None:
        self.failure = ""
        self._ctx, self._intent = ctx, intent

    def handle_event(self, event: dict[str, Any]) -> bool:
        said = json.dumps(event)
        if (covered := redact(said)) != said:  # the runner keeps the event as we leave it
            event.update(json.loads(covered))
        data = event.get("event_data", {})
        answer = data.get("res") or {}
        match event["event"]:
            case "runner_on_start":
                self._ctx.progress(f"{self._intent.node}: {self._intent.action}: {data.get('task', '')} …")
            case "runner_on_failed" | "runner_on_unreachable":
                self.failure = f"{data.get('task', '')}: {answer.get('msg', 'failed without a message')}"
            case "error":
                self.failure = self.failure or event.get("stdout", "").strip()
        return True
