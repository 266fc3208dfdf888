"""What the repository must keep and must not: each code, wrong and right."""

from __future__ import annotations

from cases.case import POLICY, Case, pool

ASKS = {"specs/policy.yaml": POLICY + "commits: {signed: true}\n"}
SIGNERS = {"specs/allowed_signers": '# us\nalice@example.org namespaces="git" ssh-ed25519 AAAAC3NzaC1l alice\n'}

CASES: dict[str, Case] = {
    "ASY0095": Case(
        pool("u: 2", "u: 2, bmc_credentials: {file: specs/bmc}"),
        pool("u: 2", "u: 2, bmc_credentials: {file: /etc/assay/bmc}"),
        "inventory/pool.yml:5:73",
    ),
    "ASY0096": Case({**ASKS, "specs/allowed_signers": "# nobody yet\n"}, {**ASKS, **SIGNERS}, "specs/policy.yaml:18:1"),
}
