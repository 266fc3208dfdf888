"""Finds each place that calls a program or a service outside of assay, or writes a file for one.

A place is `FILE:FUNCTION: WHAT`, or `FILE: WHAT`, with FILE below `src/assay` or the repository:

- in the code: what starts a process; lists of words that begin with a program; imports of a client of a service;
  requests that change something at a BMC or in Kubernetes; texts that begin as a file of another program does,
- in playbooks: each task with a module that acts, and what the modules start,
- in specs: the commands that they declare,
- files that are shipped for others: `deploy/`, workflows, images.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.architecture.source_tree import SOURCE, read_source_modules, walk_with_functions
from tests.support.places import ROOT

STARTERS = re.compile(
    r"(^|\.)(subprocess\.(run|Popen|call|check_call|check_output)|os\.(exec\w+|posix_spawn\w*|system)"
    r"|create_subprocess_exec|create_subprocess_shell|run_command|run_tool|call_tool)$"
)
GIVEN = "starts what it is given"
PROGRAM = re.compile(r"[a-z][a-z0-9_.+-]*")
OPTION = re.compile(r"--?[A-Za-z0-9]")
# fmt: off
PROGRAMS = {
    "apptainer", "df", "docker", "git", "gpg", "iblinkinfo", "ibnetdiscover", "ibqueryerrors", "kubectl", "mdadm",
    "openssl", "podman", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun", "ssh", "sudo", "systemctl",
    "timedatectl", "tpm2_getcap", "umount",
}
# fmt: on
"""Programs that are called with no option too."""
# fmt: off
CLIENTS = {
    "ansible_runner", "apprise", "dbos", "http.client", "jax", "kubernetes", "psycopg",
    "boto3", "pynvml", "redfish", "requests", "smtplib", "urllib.request",
}
# fmt: on
CONNECTORS = re.compile(r"(^|\.)(create_engine|ctypes\.CDLL|socket\.create_connection|socket\.socket)$")
CHANGES = {"post", "patch", "delete"}
REMOTE = ("adapters/bmc/", "adapters/kubernetes/")
FORMATS = {
    "an iPXE script": r"^#!ipxe",
    "a GRUB script": r"^(menuentry |linux \(|set timeout)",
    "settings of dnsmasq": r"^dhcp-(boot|host|match|range|userclass|vendorclass)",
    "settings of conserver": r"^# Written by `assay console",
    "settings of Kea": r"^Dhcp[46]?$",
    "cloud-init's data": r"^#cloud-config",
    "an object of Kubernetes": r"^apiVersion$",
    "a shell script": r"^#!/bin/sh",
    "a unit of systemd": r"^\[(Unit|Service)\]|^ExecStart",
    "JUnit XML": r"^testsuites?$",
}
TELLING = {
    "assert",
    "debug",
    "fail",
    "import_role",
    "include_role",
    "import_tasks",
    "include_tasks",
    "meta",
    "set_fact",
}
"""Modules of Ansible that change and ask nothing."""
SHIPPED = ("deploy", ".github/workflows", ".gitlab-ci.yml", "src/assay/declare/starter/own")
FOR_OTHERS = re.compile(r"\.(ya?ml|json|service|conf)$|^deploy/(Containerfile|assay-)")


def find_places() -> list[str]:
    """Return every place of the repository, in the order of files."""
    found: list[str] = []
    for module in read_source_modules():
        found += find_in_code(module.path.relative_to(SOURCE / "assay").as_posix(), module.tree)
    for path in sorted((ROOT / "playbooks").rglob("*.py")):
        found += find_in_code(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text()))
    for path in sorted((ROOT / "playbooks").rglob("*.yml")):
        if path.parent.name in ("tasks", "playbooks"):
            found += find_in_tasks(path.relative_to(ROOT).as_posix(), yaml.safe_load(path.read_text()))
    for path in sorted((ROOT / "specs").rglob("*.yaml")):
        found += find_in_spec(path.relative_to(ROOT).as_posix(), path.read_text())
    return [*found, *_list_shipped()]


def _list_shipped() -> Iterator[str]:
    for place in SHIPPED:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name = file.relative_to(ROOT).as_posix()
            if file.is_file() and FOR_OTHERS.search(name) and "/specs/" not in name and "/inventory/" not in name:
                yield f"{name}: the file"


def find_in_code(file: str, tree: ast.AST) -> list[str]:
    """Return the places of one module, without repetitions."""
    found: dict[str, None] = {}
    for function, node in walk_with_functions(tree, docstrings=False):
        for text in _describe(file, node):
            is_import = text.startswith("uses ")
            found[f"{file}: {text}" if is_import or not function else f"{file}:{'.'.join(function)}: {text}"] = None
    named = {place.rpartition(": runs ")[0] for place in found if ": runs " in place}
    return [
        place
        for place in found
        if (not place.endswith(GIVEN) or place.removesuffix(f": {GIVEN}") not in named)
        and not any(other.startswith(f"{place} ") for other in found)  # `runs nvme` beside `runs nvme smart-log`
    ]


def _describe(file: str, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if STARTERS.search(name):
            words = node.args[0] if node.args else None
            is_list = isinstance(words, ast.List | ast.Tuple) and not isinstance(words.elts[0], ast.Starred)
            yield f"runs {_read_start(words.elts[0]) or ast.unparse(words.elts[0])}" if is_list else GIVEN
        elif connector := CONNECTORS.search(name):
            yield f"connects by {connector[2]}"
        elif file.startswith(REMOTE) and name.rpartition(".")[2] in CHANGES and "." in name:
            yield f"sends {name.rpartition('.')[2].upper()}"
    elif isinstance(node, ast.List | ast.Tuple) and (words := _read_command(node)):
        yield f"runs {words}"
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (f"uses {client}" for client in _list_clients(node))
    elif isinstance(node, ast.Constant | ast.JoinedStr):
        text = _read_start(node)
        yield from (f"writes {what}" for what, pattern in FORMATS.items() if re.search(pattern, text))


def _read_command(node: ast.List | ast.Tuple) -> str:
    """Return the program that a list of words begins with, and the words of it that are no options; "" for others."""
    words = [_read_start(part) for part in node.elts]
    has_option = any(map(OPTION.match, words[1:]))
    if has_option and isinstance(node.elts[0], ast.Name | ast.Attribute):
        return ast.unparse(node.elts[0])
    if not words or not PROGRAM.fullmatch(words[0]) or isinstance(node.elts[0], ast.JoinedStr):
        return ""
    if words[0] not in PROGRAMS and not has_option:
        return ""
    count = next((at for at, word in enumerate(words[:3]) if not PROGRAM.fullmatch(word)), len(words[:3]))
    return " ".join(words[:count])


def _read_start(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return _read_start(node.values[0]) if node.values else ""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _list_clients(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [node.module or "", *(f"{node.module}.{name}" for name in names)] if not node.level else []
    for client in sorted(CLIENTS):
        if any(name == client or name.startswith(f"{client}.") for name in names):
            yield client


def find_in_tasks(file: str, tasks: Any) -> list[str]:
    """Return the tasks of a file that act."""
    found: dict[str, None] = {}
    for task in tasks or []:
        for part in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            found |= dict.fromkeys(find_in_tasks(file, task.get(part)))
        modules = [name.rpartition(".")[2] for name in task if name.startswith(("ansible.", "assay.", "community."))]
        for module in modules:
            if module not in TELLING:
                found[f"{file}: {task['name']} ({module})"] = None
    return list(found)


def find_in_spec(file: str, text: str) -> list[str]:
    """Return the commands that a spec declares."""
    return [f"{file}: the command" for document in yaml.safe_load_all(text) if _has_command(document)][:1]


def _has_command(part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(part.get("command"), list) or any(map(_has_command, part.values()))
    return isinstance(part, list) and any(map(_has_command, part))
