"""Holds a process of Ansible to the lab's machines while the lab is chosen, whatever its plays and options say.

No public hook of Ansible sees every task: a play names its own strategy; `-c`, keywords, `-e`, loops and delegation
name connections; and what a callback raises is a warning. So `playbooks/vars_plugins/assay_context.py`, which Ansible
loads while it reads the inventory, before any play, wraps the two functions that each task of each strategy passes:

- `VariableManager.get_vars` gives the lab's variables the last word, also over `-e`. It refuses other hosts: a play's
  before its first task (of `-i a,b`, before that host's task), a delegation's before it is connected.
- `TaskExecutor._set_connection_options` is called after all templates, for each item of a loop, before the task
  connects. There the task gets the lab's connection, or is refused.

If a version of Ansible lacks one of them, nothing runs. With the fleet chosen, nothing is wrapped. What a lookup or an
action plug-in of the site does on the controller by itself is no connection, and passes neither.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.declare.home import Home, find_home

REACH = "assay.fleet.reach"
PACE = {"firmware_read_back_s", "firmware_steady_s"}
"""The variables of the lab that reach nothing: how long a play waits, as its time is faster. `-e` goes before them."""
Variables = dict[str, Any]


def hold_to_context(root: Path) -> Mapping[str, Variables]:
    """Keep this process and its children on the context chosen now. Return a lab's variables by host, {} for the fleet.

    Raises AssayError if the lab is chosen and does not answer.
    """
    home = find_home(root)
    os.environ.update(home.environment)
    if not home.is_lab:
        return {}
    from ansible.parsing.dataloader import DataLoader

    home.require_answer()
    (overlay,) = home.overlays or ()
    declared = DataLoader().load_from_file(str(overlay)) or {}  # Ansible's own reader knows !vault
    declared_hosts = (declared.get("all") or {}).get("hosts") or {}
    is_fixed = {"ansible_connection": REACH, "ansible_become": False}
    # a host of the lab is taken whole, or not at all
    hosts = {name: {**host, **is_fixed} for name, host in declared_hosts.items() if host and "reach" in host}
    reaching = {name: {key: host[key] for key in host.keys() - PACE} for name, host in hosts.items()}
    _wrap_variables(reaching)
    _wrap_connections(reaching)
    _announce_lab(home)
    return hosts


def _announce_lab(home: Home) -> None:
    """Say it, and let Ansible find `REACH` for plays in any folder."""
    from ansible.utils.collection_loader import AnsibleCollectionConfig
    from ansible.utils.display import Display

    AnsibleCollectionConfig.playbook_paths = [*AnsibleCollectionConfig.playbook_paths, str(home.root / "playbooks")]
    Display().display(f"[assay] the lab is chosen: plays reach only its machines ({home.world})", stderr=True)


def _wrap_variables(hosts: Mapping[str, Variables]) -> None:
    from ansible.template import Templar
    from ansible.vars.manager import VariableManager

    get_all = VariableManager.get_vars

    def get_vars(self: Any, play: Any = None, host: Any = None, task: Any = None, **options: Any) -> Variables:
        variables: Variables = get_all(self, play, host, task, **options)
        if host is not None:
            if task is not None:
                _refuse_others([host.name], hosts)
            variables |= hosts.get(host.name, {})
        elif play is not None and (play.finalized or not Templar(self._loader).is_template(play.hosts)):
            _refuse_others(variables["ansible_play_hosts_all"], hosts)
        return variables

    VariableManager.get_vars = get_vars


def _wrap_connections(hosts: Mapping[str, Variables]) -> None:
    from ansible.errors import AnsibleError
    from ansible.executor.task_executor import TaskExecutor

    set_options = TaskExecutor._set_connection_options

    def set_connection_options(self: Any, variables: Variables, templar: Any) -> Any:
        task, host = self._task, self._task.delegate_to or self._host.name
        if host in hosts and task.connection not in ("local", "ansible.builtin.local"):
            variables.update(hosts[host])  # a loop may have named its variable `reach`
            self._connection = self._get_connection(variables, templar, REACH)
            return set_options(self, variables, templar)
        find_action = self._shared_loader_obj.action_loader.get
        action = find_action(task.action, class_only=True, collection_list=task.collections)
        if getattr(action, "_requires_connection", True):
            raise AnsibleError(
                f"the lab is chosen, and {task.action} for {host} would not run on a machine of the lab: localhost and "
                "`connection: local` are none. Leave it out; or, for the real machines: assay context fleet"
            )
        self._connection = self._get_connection(variables, templar, "local")
        return set_options(self, variables, templar)

    TaskExecutor._set_connection_options = set_connection_options


def _refuse_others(names: Iterable[str], hosts: Mapping[str, Variables]) -> None:
    from ansible import constants
    from ansible.errors import AnsibleError

    if others := [name for name in names if name not in hosts and name not in constants.LOCALHOST]:
        raise AnsibleError(
            f"the lab is chosen, and it has no {', '.join(others)}: name its machines with --limit; "
            "or, for the real machines: assay context fleet"
        )
