"""What is taken for a secret and what is left in peace; and that no message ever shows one."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.declare.check import check_repository
from assay.declare.rules.secrets import FIX
from assay.declare.secret_detection import (
    SECRET_SHAPES,
    SecretHint,
    SecretShape,
    classify_name,
    find_secret_shape,
    looks_random,
)
from tests.declare.rules.cases.case import POLICY, POOL

show_app = load_verb("show")

Write = Callable[[Mapping[str, "str | None"]], Path]
CANARY = "canary-0f7Qz81Lw5"

SECRETS = [
    "bmc_password: CANARY",
    "ansible_become_pass: CANARY",
    "snmp_community: CANARY",
    "ipmi: {user: admin, password: CANARY}",
    "api_tokens: [CANARY]",
    "clientSecret: CANARY",
    "site_private_key: CANARY",
    "bmc_password: 20192020",
    'db: "postgresql://assay:CANARY@db/ledger"',
    'relay: "smtp://:CANARY@relay"',
    "credentials: {lab: q7Gd0Zk4Lw9Xe2Rt6Yu8Pm3}",
    "session_cookie: 3f786850e387550fdab836ed7e6dc881",
    f'note: "AKIA{"Q" * 16}"',
    f'note: "see xoxb-{"1" * 12}"',
    f'note: "hvs.{"Ca" * 12}"',
    f'note: "nvapi-{"x" * 60}"',
    f'note: "eyJ{"a" * 10}.eyJ{"b" * 10}.{"c" * 10}"',
    f'note: "$6$salt${"h" * 40}"',
    'note: "-----BEGIN RSA PRIVATE ' + 'KEY-----"',
    "!vault-like: {password: CANARY}".removeprefix("!"),
]
INNOCENT = [
    "bmc_credentials: {env: ASSAY_BMC}",
    "bmc_credentials: {command: [pass, show, bmc]}",
    "bmc_password: \"{{ lookup('env', 'BMC_PASSWORD') }}\"",
    "bmc_password: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        3031\n",
    'bmc_password: ""',
    "bmc_password: null",
    "password_file: /etc/assay/bmc",
    "ansible_ssh_private_key_file: ~/.ssh/id_ed25519",
    "token_url: https://login.example.org/token",
    "password_length: 20",
    "secret_name: bmc-lab",
    "max_tokens: 4096",
    "token_required: true",
    'ssh_public_key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0f7Qz81Lw5q7Gd0Zk4Lw9Xe2Rt6Yu8Pm3 ops"',
    'ssh_key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0f7Qz81Lw5q7Gd0Zk4Lw9Xe2Rt6Yu8Pm3 ops"',
    "tls_private_key: /etc/ssl/private/bmc.pem",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "key_sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    'guid: "0xa088c203009a0106"',
    "node_uuid_key: 123e4567-e89b-12d3-a456-426614174000",
    'pci: "0000:18:00.0"',
    "chassis: A520112X4400017",
    "key: hgx-h100-2026-10",
    'mirror: "https://mirror.example.org:8443/path@2"',
    'proxy: "http://$USER:$PASSWORD@proxy:3128"',
    "source_repo: git@github.com:site/fleet.git",
    "monkey: CANARY",
    "compass: CANARY",
]


def with_variable(variable: str) -> dict[str, str | None]:
    lines = variable.replace("CANARY", CANARY)
    return {"inventory/pool.yml": f"{POOL}  vars:\n    {lines}\n"}


def of_secrets(found: list) -> list[str]:
    return [problem.code for problem in found if "ASY0090" <= problem.code <= "ASY0094"]


@pytest.mark.parametrize("variable", SECRETS)
def test_a_secret_in_the_inventory_is_found_once_and_not_shown(variable: str, fleet_with: Write) -> None:
    found = check_repository(fleet_with(with_variable(variable))).problems
    assert len(of_secrets(found)) == 1
    assert CANARY not in str(found)


@pytest.mark.parametrize("variable", INNOCENT)
def test_what_only_resembles_one_is_left_in_peace(variable: str, fleet_with: Write) -> None:
    assert of_secrets(check_repository(fleet_with(with_variable(variable))).problems) == []


@pytest.mark.parametrize("file", ["inventory/group_vars/all.yml", "inventory/host_vars/n2/more.yml", "specs/zz.yaml"])
def test_it_is_found_at_every_level(file: str, fleet_with: Write) -> None:
    spec = POLICY.replace("name: policy", "name: another").replace("[us]", "['https://u:hunter@x/']")
    found = check_repository(
        fleet_with({file: spec if file.startswith("specs") else f"bmc_password: {CANARY}\n"})
    ).problems
    assert len(of_secrets(found)) == 1
    assert [problem.file for problem in found if problem.fix == FIX] == [file]


def test_hosts_and_groups_may_be_called_as_they_like(fleet_with: Write) -> None:
    named = POOL.replace("n1:", "token-server:") + "secrets:\n  hosts: {n2: }\n  vars: {batch: q7Gd0Zk4Lw9Xe2Rt6Yu8}\n"
    assert of_secrets(check_repository(fleet_with({"inventory/pool.yml": named})).problems) == []


def test_the_example_fleet_holds_none(example: Path) -> None:
    assert of_secrets(check_repository(example).problems) == []


@pytest.mark.parametrize(
    "variable",
    [
        f"bmc_credentials: {CANARY}",
        f"bmc_credentials: {{env: A, file: {CANARY}}}",
        f"bmc_credentials: {{vault: {CANARY}}}",
        f"bmc_credentials: {{password: {CANARY}}}",
        f"bmc_credentials: [{CANARY}]",
        f'bmc_address: "https://u:{CANARY}@bmc"',
        f'rack: ["https://u:{CANARY}@bmc"]',
        f"bmc_password: [{CANARY}, {CANARY}",
    ],
)
def test_no_message_of_any_rule_shows_a_secret(variable: str, fleet_with: Write) -> None:
    found = check_repository(fleet_with(with_variable(variable))).problems
    assert found
    assert CANARY not in json.dumps([asdict(problem) for problem in found])


@given(st.text(string.ascii_letters + string.digits, min_size=40, max_size=60))
def test_long_texts_that_chance_wrote_are_recognised(text: str) -> None:
    few = len(set(text)) < 20 or not set(text) & set(string.digits)
    assert looks_random(text) or few


@given(st.lists(st.sampled_from(["fleet", "node", "h100", "lab1", "compute", "2026"]), min_size=2, max_size=8))
def test_names_made_of_words_are_not(words: list[str]) -> None:
    assert not looks_random("-".join(words))


@given(st.text())
def test_no_name_and_no_text_breaks_it(text: str) -> None:
    assert classify_name(text) in SecretHint
    find_secret_shape(text)
    looks_random(text)


@pytest.mark.parametrize("shape", SECRET_SHAPES, ids=lambda shape: shape.label)
@settings(max_examples=30)  # a shape has seven beginnings at most
@given(st.data())
def test_whatever_has_a_shape_has_one_of_its_needles(shape: SecretShape, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(shape.pattern))
    assert any(needle in text for needle in shape.needles)
    assert shape.source


@pytest.mark.parametrize(
    "variable",
    [
        "bmc_password: CANARY",
        "ipmi: {user: admin, password: CANARY, more: [{api_token: CANARY}]}",
        'proxy: "http://me:CANARY@proxy"',
        "bmc_credentials: {vault: !vault '$ANSIBLE_VAULT;1.1;CANARY'}",
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_node_must_be_is_shown_without_its_secrets(variable: str, form: str, fleet_with: Write) -> None:
    told = CliRunner().invoke(show_app, ["n1", "--fleet", str(fleet_with(with_variable(variable))), "--format", form])
    assert variable.partition(":")[0] in told.output
    assert CANARY not in told.output
