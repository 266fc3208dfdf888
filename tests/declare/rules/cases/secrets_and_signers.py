"""Secrets and commit signers: each code, wrong and right. The secrets are put together here, so that none is real."""

from __future__ import annotations

from tests.declare.rules.cases.case import POLICY, Case, pool

KEY = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\\nb3Bl\\n"
TOKEN = "ghp_" + "0aB1" * 9
CHANCE = "q7Gd0" + "Zk4Lw9Xe2Rt6Yu8Pm3"


def with_variable(variable: str) -> dict[str, str | None]:
    return pool("serial_number: S2", f"serial_number: S2, {variable}")


SIGNED = {"specs/policy.yaml": POLICY + "commits: {signed: true}\n"}
SIGNERS = {"specs/allowed_signers": '# us\nalice@example.org namespaces="git" ssh-ed25519 AAAAC3NzaC1l alice\n'}

CASES: dict[str, Case] = {
    "ASY0090": Case(
        with_variable("admin_password: x"), with_variable("admin_password_file: x"), "inventory/pool.yml:5:92"
    ),
    "ASY0091": Case(
        with_variable(f'deploy: "{KEY}"'),
        with_variable('deploy: "-----BEGIN PUBLIC KEY-----"'),
        "inventory/pool.yml:5:92",
    ),
    "ASY0092": Case(with_variable(f"note: {TOKEN}"), with_variable("note: ghp_short"), "inventory/pool.yml:5:92"),
    "ASY0093": Case(
        with_variable('proxy: "http://me:' + 'x@proxy:3128"'),
        with_variable('proxy: "http://me@proxy:3128"'),
        "inventory/pool.yml:5:92",
    ),
    "ASY0094": Case(with_variable(f"key: {CHANCE}"), with_variable(f"batch: {CHANCE}"), "inventory/pool.yml:5:92"),
    "ASY0095": Case(
        pool("u: 2", "u: 2, bmc_credentials: {file: specs/bmc}"),
        pool("u: 2", "u: 2, bmc_credentials: {file: /etc/assay/bmc}"),
        "inventory/pool.yml:5:73",
    ),
    "ASY0096": Case(
        {**SIGNED, "specs/allowed_signers": "# nobody yet\n"}, {**SIGNED, **SIGNERS}, "specs/policy.yaml:19:1"
    ),
}
