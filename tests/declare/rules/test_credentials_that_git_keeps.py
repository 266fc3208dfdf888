"""A file of credentials may lie beside the inventory, as long as git does not keep it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from assay.declare.check import check_repository
from tests.declare.rules.cases.case import POLICY, pool

Write = Callable[[Mapping[str, "str | None"]], Path]


def test_a_file_that_git_keeps_is_found_and_one_that_it_ignores_is_not(fleet_with: Write) -> None:
    referring = pool("u: 2", "u: 2, bmc_credentials: {file: secret/../secret/bmc}")
    root = fleet_with({**referring, "secret/bmc": "me:x\n", ".gitignore": "secret/\n"})
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    assert codes(root) == []
    subprocess.run(["git", "-C", str(root), "add", "--force", "secret/bmc"], check=True)
    assert codes(root) == ["ASY0095"]


def test_a_token_for_prometheus_that_git_keeps_is_found(fleet_with: Write) -> None:
    token = 'metrics: {url: "https://p.site", match: {Hostname: "{name}"}, token: {file: specs/../specs/token}}'
    with_token = pool("u: 2", f"u: 2, transport: prometheus, {token}")
    monitoring = {"specs/monitoring.yaml": "kind: Monitoring\nname: exporters\nsources: [us]\n"}
    assert codes(fleet_with({**with_token, **monitoring, "specs/token": "x\n"})) == ["ASY0095"]


def test_a_visitors_token_that_git_keeps_is_found(fleet_with: Write) -> None:
    access = "access: {visitors: {ann: {role: viewer, token: {file: specs/token}}}}\n"
    assert codes(fleet_with({"specs/policy.yaml": POLICY + access, "specs/token": "x\n"})) == ["ASY0095"]


def test_a_key_of_a_customers_webhook_that_git_keeps_is_found(fleet_with: Write) -> None:
    hook = "{pools: [pool-a], url: 'https://acme.site/hook', credentials: {file: specs/token}}"
    notices = f"notices: {{webhooks: {{acme: {hook}}}}}\n"
    assert codes(fleet_with({"specs/policy.yaml": POLICY + notices, "specs/token": "x\n"})) == ["ASY0095"]


def test_a_webhook_for_a_pool_that_does_not_exist_is_found(fleet_with: Write) -> None:
    hook = "{pools: [elsewhere], url: 'https://acme.site/hook', credentials: {env: KEY}}"
    assert codes(fleet_with({"specs/policy.yaml": f"{POLICY}notices: {{webhooks: {{acme: {hook}}}}}\n"})) == ["ASY0350"]


def codes(root: Path) -> list[str]:
    return [problem.code for problem in check_repository(root).problems]
