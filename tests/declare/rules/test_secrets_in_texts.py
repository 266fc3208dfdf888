"""Secrets in comments, playbooks, suites and references are told, without the secret; what resembles one is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository

Write = Callable[[Mapping[str, "str | None"]], Path]
CANARY = "Hunter" + "2-0f7Q"
TOKEN = "ghp_" + "0aB1" * 9
FILES = {"inventory/group_vars/all.yml": "", "specs/racks.csv": "", "suites/own_names.py": "", "playbooks/own.yml": ""}
SECRETS = [
    ("inventory/group_vars/all.yml", f"our_own: 1  # the bmc password: {CANARY}\n"),
    ("inventory/group_vars/all.yml", f"# password is {CANARY}, until Monday\n"),
    ("inventory/group_vars/all.yml", f"# {TOKEN}\n"),
    ("specs/racks.csv", f"name,{TOKEN}\n"),
    ("suites/own_names.py", f'BMC_PASSWORD = "{CANARY}"\n'),
    ("suites/own_names.py", f'login(user="admin", password="{CANARY}")\n'),
    ("suites/own_names.py", f"# api_token: {CANARY}\n"),
    ("playbooks/own.yml", f"- hosts: all\n  vars:\n    bmc_password: {CANARY}\n"),
    ("playbooks/own.yml", f'- hosts: all\n  vars: {{bmc_password: "{CANARY}"}}\n'),
    ("playbooks/group_vars/all.yml", f"snmp_community: {CANARY}  # read only\n"),
    (".github/workflows/own.yml", f"jobs: {{a: {{env: {{GH: {TOKEN}}}}}}}\n"),
    (".github/workflows/own.yml", f"env:\n  BMC_PASSWORD: {CANARY}\n"),
    (".github/workflows/own.yml", "env:\n  KEY: '-----BEGIN OPENSSH PRIVATE " + "KEY-----'\n"),
    (".github/actions/own/comment.py", f"GH = '{TOKEN}'\n"),
    (".gitlab-ci.yml", f"variables:\n  BMC_PASSWORD: {CANARY}\n"),
    (".gitlab-ci.yml", f"a:\n  script: [curl -H 'PRIVATE-TOKEN: glpat-{TOKEN[4:24]}' x]\n"),
    (".gitlab-ci.yml", f"# gitlab-runner register --token glrt-{TOKEN[4:24]}\n"),
    (".gitlab/ci/own.yml", f"a:\n  # the api token is {CANARY}\n  script: x\n"),
]
INNOCENT = [
    ("inventory/group_vars/all.yml", "# password: see the vault\n# the token: required\n# secret_name: bmc-lab-2026\n"),
    ("inventory/group_vars/all.yml", "# bmc password: $BMC_PASSWORD, or {{ bmc_password }}, or <password>\n"),
    ("suites/own_names.py", 'def login(password: str, token: str = "") -> None:\n    """Take a password."""\n'),
    ("suites/own_names.py", 'TOKEN_FILE = "/etc/assay/token-2"\nPASSWORD = os.environ["BMC_PASSWORD_2"]\n'),
    ("suites/own_names.py", 'password = read("secret")\ntoken = f"{user}:{password}"\n'),
    ("playbooks/own.yml", "- hosts: all\n  vars: {bmc_password: \"{{ lookup('env', 'BMC_PASSWORD') }}\"}\n"),
    ("playbooks/own.yml", "- hosts: all\n  vars:\n    bmc_password: !vault |\n      $ANSIBLE_VAULT;1.1;AES256\n"),
    ("playbooks/own.yml", "- hosts: all\n  vars:\n    password_file: /etc/assay/bmc2\n"),
    (".github/workflows/own.yml", "env:\n  BMC_PASSWORD: ${{ secrets.BMC_PASSWORD }}\n  TOKEN: ${{ github.token }}\n"),
    (".github/workflows/own.yml", "permissions:\n  id-token: write\n"),
    (".gitlab-ci.yml", "variables:\n  BMC_PASSWORD: $BMC_PASSWORD\nid_tokens: {A: {aud: https://vault}}\n"),
    ("README.md", f"{TOKEN}\n"),
]
LEAKS = [
    "{env: 'admin:CANARY'}",
    "{file: 'admin:CANARY'}",
    "{command: [echo, 'admin:CANARY']}",
    "{command: [/usr/bin/printf, '%s', 'admin:CANARY']}",
    "{command: [sh, -c, 'echo admin:CANARY']}",
    "{command: [curl, '--password=CANARY', host]}",
    "{command: [vault, login, --token, CANARY]}",
]
SOUND = [
    "{env: ASSAY_BMC}",
    "{file: /etc/assay/bmc}",
    "{command: [pass, show, bmc/lab]}",
    "{command: [op, read, 'op://fleet/bmc/password']}",
    "{command: [vault, kv, get, '-field=password', secret/bmc]}",
    "{command: [sh, -c, 'echo \"$BMC_USER:$BMC_PASSWORD\"']}",
    "{command: [curl, '--password-file=/etc/x', 'https://vault:8200/v1']}",
]


def told(root: Path) -> list[str]:
    found = check_repository(root).problems
    assert CANARY not in str(found)
    return [problem.code for problem in found if problem.code in ("ASY0247", "ASY0248")]


@pytest.mark.parametrize(("file", "text"), SECRETS)
def test_a_secret_in_a_text_is_told_once_and_not_shown(file: str, text: str, fleet_with: Write) -> None:
    assert told(fleet_with({**FILES, file: text})) == ["ASY0247"]


@pytest.mark.parametrize(("file", "text"), INNOCENT)
def test_a_text_about_secrets_is_left_in_peace(file: str, text: str, fleet_with: Write) -> None:
    assert told(fleet_with({**FILES, file: text})) == []


@pytest.mark.parametrize("reference", LEAKS)
def test_a_reference_that_holds_the_secret_is_told(reference: str, fleet_with: Write) -> None:
    text = f"bmc_credentials: {reference.replace('CANARY', CANARY)}\n"
    assert told(fleet_with({"inventory/group_vars/all.yml": text})) == ["ASY0248"]


@pytest.mark.parametrize("reference", SOUND)
def test_a_reference_to_a_place_is_left_in_peace(reference: str, fleet_with: Write) -> None:
    assert told(fleet_with({"inventory/group_vars/all.yml": f"bmc_credentials: {reference}\n"})) == []
