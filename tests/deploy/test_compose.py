"""The compose file: closed services, commands that are commands of assay, and PostgreSQL by one variable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Command
from manifests import DEPLOY
from typer.main import get_command

from assay.cli.verbs.reconcile import reconcile_app
from assay.cli.verbs.serve import serve_app
from assay.ledger.location import locate_ledger

FILE = DEPLOY / "compose.yaml"
COMMANDS: Mapping[str, Command] = {"reconcile": get_command(reconcile_app), "serve": get_command(serve_app)}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
IMAGE = f"registry.site.org/assay@sha256:{'5e' * 32}"


def read(**variables: str) -> dict[str, Any]:
    """Read the file as Compose does, with these variables set."""

    def fill(found: re.Match[str]) -> str:
        name, how, text = found.groups()
        assert how, f"{name} has neither a default nor words for who forgets it"
        if not variables.get(name) and how == "?":
            raise LookupError(name)
        return variables.get(name) or text

    return dict(yaml.safe_load(VARIABLE.sub(fill, FILE.read_text())))


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
        writable = [mount.split(":")[1] for mount in service["volumes"] if not mount.endswith(":ro")]
        assert writable == ["/fleet/.assay", "/fleet/reports"]


def test_images_have_no_default_and_postgres_starts_only_when_asked_for() -> None:
    with pytest.raises(LookupError, match="ASSAY_CONTROLLER_IMAGE"):
        read()
    assert services()["postgres"]["profiles"] == ["postgres"]
    for name in ("controller", "serve"):
        assert services()[name]["depends_on"]["postgres"]["required"] is False


def test_one_variable_puts_the_ledger_on_postgresql(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    postgres = services()["postgres"]["environment"]
    url = f"postgresql://{postgres['POSTGRES_USER']}@postgres/{postgres['POSTGRES_DB']}"
    for asked, expected in (("", tmp_path / "ledger.sqlite"), (url, url)):
        for name in ("controller", "serve"):
            told = services(ASSAY_LEDGER=asked)[name]["environment"]["ASSAY_LEDGER"]
            monkeypatch.setenv("ASSAY_LEDGER", told or "")
            assert locate_ledger(tmp_path) == expected
