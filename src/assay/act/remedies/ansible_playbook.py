"""Runs a playbook of the repository on one node, with ansible-runner. What it reports is verified elsewhere.

The files of a run are in `runner/EFFECT/` of the home. Its environment is passed in memory, and secrets in what tasks
printed are redacted. The collection `assay.fleet`, whose tasks run in ansible-playbook, reads the same fleet here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from assay.act.actions.action import ActionContext, EffectIntent, UnfinishedAction, find_action_effort
from assay.act.remedies import playbook_environment
from assay.declare.fleet_cache import load_cached_fleet
from assay.declare.home import find_home, find_home_of
from assay.declare.secret_detection import register_environment_secrets
from assay.declare.secret_lookup import handover_variable, read_secret
from assay.declare.stand_ins import refuse_node
from assay.ledger.file_locks import hold_node_lock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.text.safe_text import redact, redact_bytes

CANCEL_POLL_S = 0.5
PROGRESS_MARK = "assay: "
"""How the lines begin that a task of `assay.fleet` prints while it works."""


def run_playbook(
    context: ActionContext, intent: EffectIntent, name: str, variables: Mapping[str, Any], tags: Sequence[str] = ()
) -> None:
    """Run `playbooks/NAME` on the intent's node: all of it, or what has one of the tags.

    Raises AssayError with the message of the failed task. Neither an error nor its absence proves anything: read the
    node to verify. A run that was cut short (canceled, killed, past the action's deadline) raises UnfinishedAction,
    after the task that outlives it has ended.
    """
    import ansible_runner

    fleet, deadline_s = context.fleet, find_action_effort(context.fleet, intent.action).deadline_s
    playbook = fleet.root / "playbooks" / name
    if not playbook.exists():
        raise AssayError(f"there is no {playbook.relative_to(fleet.root)}", where=intent.node)
    home = find_home_of(fleet)  # whatever a person chooses meanwhile
    home.require_answer()
    listener = _PlaybookListener(context, intent)
    folder = context.home / "runner" / intent.effect
    folder.mkdir(parents=True, exist_ok=True)
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(folder),
        playbook=str(playbook),
        inventory=[str(path) for path in (home.root / "inventory", *(home.overlays or ()))],
        limit=intent.node,
        extravars=dict(variables),
        tags=",".join(tags) or None,
        envvars=_build_environment(folder, fleet.root) | home.environment,
        suppress_env_files=True,
        event_handler=listener.handle_event,
        quiet=True,
    )
    if "ANSIBLE_HOST_KEY_CHECKING" not in os.environ:
        runner.config.env.pop("ANSIBLE_HOST_KEY_CHECKING", None)  # the runner turns it off; ansible.cfg decides
    runner.config.command = [sys.executable, "-m", playbook_environment.__name__, *runner.config.command]
    runner.config.job_timeout = deadline_s
    runner.config.pexpect_timeout = CANCEL_POLL_S  # how often the runner looks whether to cancel
    register_environment_secrets(*list_credential_variables(fleet))
    whole_environment = runner.config.env | resolve_node_credentials(fleet, intent.node)
    try:
        with playbook_environment.pass_environment(whole_environment) as environment:
            runner.config.env = environment
            runner.run()
    finally:
        redact_files(folder)
    if runner.status == "failed" and listener.failure:
        raise AssayError(f"{name}: {listener.failure}", where=intent.node)
    if runner.status != "successful":
        with hold_node_lock(context.home, intent.node, deadline_s):  # a task that goes on holds it until it has ended
            pass
        raise UnfinishedAction(f"{name}: ansible-playbook ended {runner.status} in the middle", where=intent.node)


def list_credential_variables(fleet: Fleet) -> set[str]:
    """Return the environment variables that hold credentials, as inventory and node specs name them."""
    references = [node.settings.bmc_credentials for node in fleet.nodes.values()]
    specs = fleet.node_specs.values()
    references += [account.password for spec in specs for account in spec.bmc.accounts.users.values()]
    return {reference.env for reference in references if reference and reference.env}


def resolve_node_credentials(fleet: Fleet, name: str) -> dict[str, str]:
    """Return the variable that passes a node's BMC credentials to the playbook, so that it need not fetch them again.

    It is empty if they cannot be read: a task that needs them reports that.
    """
    reference = fleet.nodes[name].settings.bmc_credentials
    if reference is None:
        return {}
    try:
        return {handover_variable(reference): read_secret(reference, fleet.root)}
    except AssayError:
        return {}


def redact_files(folder: Path) -> None:
    """Redact every secret that this process knows in the files below a folder."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if (redacted := redact_bytes(content)) != content:
                path.write_bytes(redacted)


def find_task_node(variables: Mapping[str, Any]) -> tuple[Fleet, Node]:
    """Return the fleet and the node of an Ansible task, from its variables.

    The fleet repository is the parent of the playbook's folder. Raises AssayError for an unknown host, and for a real
    node whose serial number or address is an example, unless the task only looks (`--check`).
    """
    root = Path(variables["playbook_dir"]).parent
    fleet, name = _load_fleet_once(root), variables["inventory_hostname"]
    if name not in fleet.nodes:
        raise AssayError(f"the inventory of {root} has no node {name}")
    if not variables.get("ansible_check_mode"):
        refuse_node(fleet, name, "a change")
    return fleet, fleet.nodes[name]


def preload_fleet(plugin: str) -> None:
    """Load the fleet when Ansible loads a plug-in's file: each task of a host runs in a fork of that process.

    Errors are ignored here: the task itself reports them.
    """
    with suppress(AssayError, OSError, IndexError):
        _load_fleet_once(Path(plugin).parents[7])


@cache
def _load_fleet_once(root: Path) -> Fleet:
    home = find_home(root)
    home.require_answer()
    return load_cached_fleet(root, home.overlays)


def _build_environment(folder: Path, root: Path) -> dict[str, str]:
    programs = Path(sys.executable).parent
    defaults = {"ANSIBLE_CONFIG": root / "ansible.cfg", "ANSIBLE_VAULT_PASSWORD_FILE": None}
    paths = {name: os.environ.get(name) or path for name, path in defaults.items()}
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        **{name: str(Path(path).absolute()) for name, path in paths.items() if path and Path(path).exists()},
    }


class _PlaybookListener:
    """Shows which task runs, and keeps the message of the last failure."""

    def __init__(self, context: ActionContext, intent: EffectIntent) -> None:
        self.failure = ""
        self._context, self._intent = context, intent

    def handle_event(self, event: dict[str, Any]) -> bool:
        text = json.dumps(event)
        if (redacted := redact(text)) != text:  # the runner stores the event as we leave it
            event.update(json.loads(redacted))
        data = event.get("event_data", {})
        result = data.get("res") or {}
        match event["event"]:
            case "runner_on_start":
                self._context.progress(f"{self._intent.node}: {self._intent.action}: {data.get('task', '')} …")
            case "runner_on_failed" | "runner_on_unreachable":
                self.failure = f"{data.get('task', '')}: {result.get('msg', 'failed without a message')}"
            case "verbose":
                for line in event.get("stdout", "").splitlines():
                    if line.startswith(PROGRESS_MARK):
                        self._context.progress(line.removeprefix(PROGRESS_MARK))
            case "error":
                self.failure = self.failure or event.get("stdout", "").strip()
        return True
