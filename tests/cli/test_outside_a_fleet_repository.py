"""Outside a fleet repository, every verb says where it looked and how to make one, and leaves nothing there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from assay.cli import app as cli
from assay.cli.app import VERBS
from assay.ledger.store import Ledger
from assay.model.errors import AssayError

ANYWHERE = {
    "init": "makes a fleet repository",
    "schema": "prints what assay answers",
    "agent": "runs on a node",
    "discover delivery": "reads a vendor's list",
    "replay": "reads a policy and a history",
    "faults": "reads a log",
    "collectives explain": "reads a file of results",
    "fabric learn": "reads a discovery",
    "fabric import": "reads a cabling sheet",
}
"""Commands that need no fleet repository, and why."""
WORDS = {
    "boot dhcp": ["--for", "dnsmasq"],
    "lab advance": ["1"],
    "operations start": ["cordon", "n0001"],
}
"""What commands get whose arguments must be right before they look at the fleet."""


def _list_commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", {})
    if not children or command.invoke_without_command:
        yield words, command
    for name, child in children.items():
        yield from _list_commands(child, (*words, name))


def _list_all_commands() -> dict[str, Any]:
    group: Any = get_command(cli.app)
    verbs = [((verb,), group.get_command(None, verb)) for verb in VERBS]
    return {" ".join(words): child for name, verb in verbs for words, child in _list_commands(verb, name)}


COMMANDS = _list_all_commands()


def _fill_in(command: Any) -> list[str]:
    """Return words for the arguments that a command requires."""
    required = [parameter for parameter in command.params if parameter.required]
    return [
        word
        for parameter in required
        for word in ([parameter.opts[0], "x"] if parameter.param_type_name == "option" else ["x"])
    ]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ANYWHERE])
def test_a_verb_names_the_folder_and_assay_init_and_makes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*name.split(), *WORDS.get(name, _fill_in(COMMANDS[name]))]
    answer = CliRunner().invoke(cli.app, words)
    assert isinstance(answer.exception, AssayError), answer.output  # `main` prints it, and ends with 2
    assert str(answer.exception).startswith(f"{tmp_path}: this is no fleet repository")
    assert "assay init" in str(answer.exception)
    assert list(tmp_path.iterdir()) == []


def test_commands_that_work_anywhere_are_still_commands() -> None:
    assert set(ANYWHERE) <= set(COMMANDS)
    assert set(WORDS) <= set(COMMANDS)


@pytest.mark.parametrize("name", [name for name in ANYWHERE if name not in ("init", "agent")])
def test_a_verb_that_works_anywhere_makes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(cli.app, [*name.split(), *_fill_in(COMMANDS[name])])
    assert list(tmp_path.iterdir()) == []


def test_the_status_of_a_lab_that_nobody_made_makes_none(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    answer = CliRunner().invoke(cli.app, ["lab", "status", "--fleet", str(tmp_path)])
    assert (answer.exit_code, answer.stdout.splitlines()[0]) == (1, "the lab is down")
    assert [path.name for path in tmp_path.iterdir()] == ["inventory"]


def test_an_empty_ledger_is_not_unchanged(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    Ledger.open(tmp_path / ".assay" / "ledger.sqlite", context="fleet").close()
    answer = CliRunner().invoke(cli.app, ["ledger", "verify", "--fleet", str(tmp_path)])
    assert answer.exit_code == 2
    assert answer.stdout.startswith("the ledger is empty, which proves nothing\n")
    assert "assay reconcile" in answer.stdout
    answer = CliRunner().invoke(cli.app, ["ledger", "verify", "--format", "json", "--fleet", str(tmp_path)])
    assert (answer.exit_code, json.loads(answer.stdout)["whole"]) == (2, False)


@pytest.mark.parametrize("form", ["text", "json", "csv"])
@pytest.mark.parametrize("entries", ["no ledger", "an empty ledger"])
def test_no_ticket_before_the_first_judgement_is_no_all_clear(tmp_path: Path, entries: str, form: str) -> None:
    (tmp_path / "inventory").mkdir()
    if entries == "an empty ledger":
        Ledger.open(tmp_path / ".assay" / "ledger.sqlite", context="fleet").close()
    answer = CliRunner().invoke(cli.app, ["tickets", "--fleet", str(tmp_path), "--format", form])
    assert "nobody knows what needs hands" in str(answer.exception)
    assert "assay reconcile --once" in str(answer.exception)
    assert answer.stdout == ""


def test_main_ends_with_2_and_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["assay", "ledger", "verify"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        f"assay: {tmp_path}: this is no fleet repository: it has no inventory/\n"
        "  → go to the root of one, or name it: --fleet DIR; to make one: assay init DIR\n"
    )


def test_this_machine_is_observed_anywhere_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(cli.app, ["observe", "--here"])
    assert answer.exit_code in (0, 1), answer.output  # 1 where a part of this machine does not answer
    assert "probe.host.boot_id" in answer.stdout
    assert list(tmp_path.iterdir()) == []
