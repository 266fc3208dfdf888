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

from assay.actions import hand_over
from assay.actions.action import Context, Intent, Unfinished
from assay.actions.effort import effort_of
from assay.actions.node_lock import node_lock
from assay.fleet.load import load_fleet
from assay.fleet.telltale import remember_environment
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node
from assay.model.secrets import hidden, hidden_bytes
from assay.observe.credentials import reference_of
from assay.observe.references import handed_name, secret

LOOK_S = 0.5


def run_playbook(ctx: Context, intent: Intent, name: str, variables: Mapping[str, Any]) -> None:
    """Run `playbooks/<name>` limited to the intent's node. Raises Trouble with what the failed tasks said.

    An end without trouble proves nothing, and neither does trouble: verify by reading the node. A run that was cut
    short (canceled, killed, past the action's deadline) is Unfinished: what it had begun is awaited, and may happen.
    """
    import ansible_runner

    playbook = ctx.fleet.root / "playbooks" / name
    if not playbook.exists():
        raise Trouble(f"there is no {playbook.relative_to(ctx.fleet.root)}", where=intent.node)
    listener = _Listener(ctx, intent)
    folder = ctx.home / "runner" / intent.effect
    folder.mkdir(parents=True, exist_ok=True)
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(folder),
        playbook=str(playbook),
        inventory=[str(path) for path in inventories(ctx.fleet.root)],
        limit=intent.node,
        extravars=dict(variables),
        envvars=_environment(folder, ctx.fleet.root),
        suppress_env_files=True,
        event_handler=listener.hear,
        quiet=True,
    )
    runner.config.command = [sys.executable, "-m", hand_over.__name__, *runner.config.command]
    runner.config.job_timeout = effort_of(ctx.fleet, intent.action).deadline_s
    runner.config.pexpect_timeout = LOOK_S  # how often it looks whether it shall end
    remember_environment(*named_in_environment(ctx.fleet))
    try:
        with hand_over.handed_over(runner.config.env | credentials_for(ctx.fleet, intent.node)) as environment:
            runner.config.env = environment
            runner.run()
    finally:
        cover(folder)
    if runner.status == "failed" and listener.complaint:
        raise Trouble(f"{name}: {listener.complaint}", where=intent.node)
    if runner.status != "successful":
        _await_what_is_left(ctx, intent)
        raise Unfinished(f"{name}: ansible-playbook ended {runner.status} in the middle", where=intent.node)


def _await_what_is_left(ctx: Context, intent: Intent) -> None:
    """Wait for the task that outlives its ansible-playbook: it holds the node's lock until its effect is over."""
    with node_lock(ctx.home, intent.node, effort_of(ctx.fleet, intent.action).deadline_s):
        return


def named_in_environment(fleet: Fleet) -> set[str]:
    """Return the environment variables that the inventory names as holding credentials."""
    references = [node.variables.get("bmc_credentials") for node in fleet.nodes.values()]
    return {str(one["env"]) for one in references if isinstance(one, dict) and "env" in one}


def credentials_for(fleet: Fleet, name: str) -> dict[str, str]:
    """Return the variable in which a node's credentials are handed over, so that nobody need fetch them once more.

    Where they cannot be had, none: a playbook that needs them will say so.
    """
    reference = reference_of(fleet.nodes[name])
    if reference is None:
        return {}
    try:
        return {handed_name(reference): secret(reference, fleet.root)}
    except Trouble:
        return {}


def cover(folder: Path) -> None:
    """Cover every secret that this process knows in the files below a folder."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if (covered := hidden_bytes(content)) != content:
                path.write_bytes(covered)


def inventories(root: Path) -> list[Path]:
    """Return the repository's inventory and, where a lab is up, what that lays over it."""
    overlay = root / ".assay" / "lab" / "inventory.yml"
    return [root / "inventory", *([overlay] if overlay.exists() else [])]


def node_of(variables: Mapping[str, Any]) -> tuple[Fleet, Node]:
    """Return the fleet and the node of a task, from Ansible's own variables. Raises Trouble for a foreign host.

    The fleet repository is the parent of the playbook's folder.
    """
    root = Path(variables["playbook_dir"]).parent
    fleet, name = _read_once(root), variables["inventory_hostname"]
    if name not in fleet.nodes:
        raise Trouble(f"the inventory of {root} has no node {name}")
    return fleet, fleet.nodes[name]


def read_before_hosts(plugin: str) -> None:
    """Read the fleet of a collection's plugin file where Ansible loads it first: each task of a host is a fork of that.

    Nothing where it is not read that way: the task itself will say why.
    """
    with suppress(Trouble, OSError, IndexError):
        _read_once(Path(plugin).parents[7])


@cache
def _read_once(root: Path) -> Fleet:
    return load_fleet(root, inventories(root)[1:])


def _environment(folder: Path, root: Path) -> dict[str, str]:
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


class _Listener:
    """Tells what the playbook is doing, and keeps what its failures said."""

    def __init__(self, ctx: Context, intent: Intent) -> None:
        self.complaint = ""
        self._ctx, self._intent = ctx, intent

    def hear(self, event: dict[str, Any]) -> bool:
        said = json.dumps(event)
        if (covered := hidden(said)) != said:  # the runner keeps the event as we leave it
            event.update(json.loads(covered))
        data = event.get("event_data", {})
        answer = data.get("res") or {}
        match event["event"]:
            case "runner_on_start":
                self._ctx.tell(f"{self._intent.node}: {self._intent.action}: {data.get('task', '')} …")
            case "runner_on_failed" | "runner_on_unreachable":
                self.complaint = f"{data.get('task', '')}: {answer.get('msg', 'failed without a message')}"
            case "error":
                self.complaint = self.complaint or event.get("stdout", "").strip()
        return True
