"""Secrets in the repository: each code, wrong and right. The wrong ones are put together here, so that none is real."""

from __future__ import annotations

from cases.case import Case, pool

KEY = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\\nb3Bl\\n"
TOKEN = "ghp_" + "0aB1" * 9
CHANCE = "q7Gd0" + "Zk4Lw9Xe2Rt6Yu8Pm3"


def said(variable: str) -> dict[str, str | None]:
    return pool("serial_number: S2", f"serial_number: S2, {variable}")


CASES: dict[str, Case] = {
    "ASY0090": Case(said("admin_password: x"), said("admin_password_file: x"), "inventory/pool.yml:5:92"),
    "ASY0091": Case(said(f'deploy: "{KEY}"'), said('deploy: "-----BEGIN PUBLIC KEY-----"'), "inventory/pool.yml:5:92"),
    "ASY0092": Case(said(f"note: {TOKEN}"), said("note: ghp_short"), "inventory/pool.yml:5:92"),
    "ASY0093": Case(
        said('proxy: "http://me:' + 'x@proxy:3128"'), said('proxy: "http://me@proxy:3128"'), "inventory/pool.yml:5:92"
    ),
    "ASY0094": Case(said(f"key: {CHANCE}"), said(f"batch: {CHANCE}"), "inventory/pool.yml:5:92"),
}
