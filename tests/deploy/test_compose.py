"""The compose files: closed services, commands that are commands of assay, and PostgreSQL by a second file.

`test_compose_runs.py` starts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Command
from typer.main import get_command

from assay.cli.app import load_verb
from assay.ledger.location import locate_ledger
from tests.deploy.manifests import DEPLOY

reconcile_app = load_verb("reconcile")
serve_app = load_verb("serve")

FILE, WITH_POSTGRES = DEPLOY / "compose.yaml", DEPLOY / "compose-postgres.yaml"
COMMANDS: Mapping[str, Command] = {"reconcile": get_command(reconcile_app), "serve": get_command(serve_app)}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]+))?\}")
"""An empty default is none: the podman-compose of Debian 12 would leave the words as they are."""
WRITABLE = {
    "controller": {
        *("/fleet/.assay", "/fleet/reports", "/var/lib/assay"),
        *("/fleet/.git/objects", "/fleet/.git/refs/notes", "/fleet/.git/logs/refs/notes"),
    },
    "serve": {"/fleet/.assay", "/fleet/reports"},
}
IMAGE = f"registry.site.org/assay@sha256:{'5e' * 32}"


def read(file: Path = FILE, **variables: str) -> dict[str, Any]:
    """Read a file as Compose does, with these variables set."""

    def fill(found: re.Match[str]) -> str:
        name, how, text = found.groups()
        assert how, f"{name} has neither a default nor words for who forgets it"
        if not variables.get(name) and how == "?":
            raise LookupError(name)
        return variables.get(name) or text

    return dict(yaml.safe_load(VARIABLE.sub(fill, file.read_text())))


def services(**variables: str) -> dict[str, Any]:
    images = {"ASSAY_CONTROLLER_IMAGE": IMAGE, "ASSAY_SERVE_IMAGE": IMAGE}
    return dict(read(**images, **variables)["services"])


@pytest.mark.parametrize(("name", "verb"), [("controller", "reconcile"), ("serve", "serve")])
def test_what_a_service_is_told_is_a_command_of_assay(name: str, verb: str) -> None:
    words = services()[name]["command"]
    assert words[0] == verb
    context = COMMANDS[verb].make_context(verb, list(words[1:]), resilient_parsing=False)
    assert context.args == []


def test_a_misspelt_option_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["serve"].make_context("serve", ["--certificate", "x"])


def test_the_services_of_assay_may_write_only_what_they_must() -> None:
    for name in ("controller", "serve"):
        service = services()[name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"] == "65532:65532"
        assert WRITABLE[name] == {mount.split(":")[1] for mount in service["volumes"] if not mount.endswith(":ro")}


def test_what_the_unit_may_write_to_the_container_may_too() -> None:
    lines = (DEPLOY / "assay-reconcile.service").read_text().splitlines()
    places = [word for line in lines if line.startswith("ReadWritePaths=") for word in line.partition("=")[2].split()]
    written = {place.removeprefix("-").replace("/srv/fleet", "/fleet") for place in places}
    assert "StateDirectory=assay" in lines
    assert written | {"/var/lib/assay"} == WRITABLE["controller"]


def test_images_and_passwords_have_no_default() -> None:
    with pytest.raises(LookupError, match="ASSAY_CONTROLLER_IMAGE"):
        read()
    with pytest.raises(LookupError, match="PGPASSWORD"):
        read(WITH_POSTGRES, POSTGRES_IMAGE=IMAGE)


def test_the_second_file_adds_postgres_and_lets_both_services_wait_for_it() -> None:
    added = read(WITH_POSTGRES, POSTGRES_IMAGE=IMAGE, PGPASSWORD="x")["services"]
    assert added.keys() == {"controller", "serve", "postgres"}
    for name in ("controller", "serve"):
        assert added[name] == {"depends_on": {"postgres": {"condition": "service_healthy"}}}


def test_the_documented_variable_puts_the_ledger_on_postgresql(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    postgres = read(WITH_POSTGRES, POSTGRES_IMAGE=IMAGE, PGPASSWORD="x")["services"]["postgres"]["environment"]
    url = f"postgresql://{postgres['POSTGRES_USER']}@postgres/{postgres['POSTGRES_DB']}"
    assert f"ASSAY_LEDGER={url}" in (DEPLOY.parent / "docs" / "install.md").read_text()
    monkeypatch.setenv("ASSAY_LEDGER", url)
    assert locate_ledger(tmp_path) == url
    for name in ("controller", "serve"):
        assert services()[name]["env_file"] == ["/etc/assay/env"]
        assert "environment" not in services()[name], "it would win over the file"
