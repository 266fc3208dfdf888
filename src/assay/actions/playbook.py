"""Runs one of the repository's playbooks on one node with ansible-runner. What it claims is proved elsewhere.

Everything of a run lies in `.assay/runner/<effect>/`, but for the BMCs' passwords: those are handed over in memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.actions import hand_over
from assay.actions.action import Context, Intent
from assay.fleet.load import load_fleet
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node


def run_playbook(ctx: Context, intent: Intent, name: str, variables: Mapping[str, Any]) -> None:
    """Run `playbooks/<name>` limited to the intent's node. Raises Trouble with what the failed tasks said.

    An end without trouble proves nothing, and neither does trouble: verify by reading the node.
    """
    import ansible_runner

    playbook = ctx.fleet.root / "playbooks" / name
    if not playbook.exists():
        raise Trouble(f"there is no {playbook.relative_to(ctx.fleet.root)}", where=intent.node)
    listener = _Listener(ctx, intent)
    folder = ctx.home / "runner" / intent.effect
    folder.mkdir(parents=True, exist_ok=True)
    secrets = secrets_of(ctx.fleet)
    runner = ansible_runner.interface.init_runner(
        private_data_dir=str(folder),
        playbook=str(playbook),
        inventory=[str(path) for path in inventories(ctx.fleet.root)],
        limit=intent.node,
        extravars=dict(variables),
        envvars=_environment(folder),
        suppress_env_files=True,
        event_handler=listener.hear,
        quiet=True,
    )
    runner.config.command = [sys.executable, "-m", hand_over.__name__, *runner.config.command]
    with hand_over.handed_over(secrets) as place:
        runner.config.env = {name: text for name, text in runner.config.env.items() if name not in secrets} | place
        runner.run()
    if runner.status != "successful":
        raise Trouble(f"{name}: {listener.complaint or f'ansible-playbook ended {runner.status}'}", where=intent.node)


def secrets_of(fleet: Fleet) -> dict[str, str]:
    """Return the environment variables that the inventory names as holding secrets, as far as they are set."""
    references = [node.variables.get("bmc_credentials") for node in fleet.nodes.values()]
    names = {reference["env"] for reference in references if isinstance(reference, dict) and "env" in reference}
    return {name: os.environ[name] for name in names if name in os.environ}


def inventories(root: Path) -> list[Path]:
    """Return the repository's inventory and, where a lab is up, what that lays over it."""
    overlay = root / ".assay" / "lab" / "inventory.yml"
    return [root / "inventory", *([overlay] if overlay.exists() else [])]


def node_of(variables: Mapping[str, Any]) -> tuple[Fleet, Node]:
    """Return the fleet and the node of a task, from Ansible's own variables. Raises Trouble for a foreign host.

    The fleet repository is the parent of the playbook's folder.
    """
    root = Path(variables["playbook_dir"]).parent
    fleet = load_fleet(root, inventories(root)[1:])
    name = variables["inventory_hostname"]
    if name not in fleet.nodes:
        raise Trouble(f"the inventory of {root} has no node {name}")
    return fleet, fleet.nodes[name]


def _environment(folder: Path) -> dict[str, str]:
    here = Path(sys.executable).parent
    return {
        "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }


class _Listener:
    """Tells what the playbook is doing, and keeps what its failures said."""

    def __init__(self, ctx: Context, intent: Intent) -> None:
        self.complaint = ""
        self._ctx, self._intent = ctx, intent

    def hear(self, event: dict[str, Any]) -> bool:
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
