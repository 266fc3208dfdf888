"""Each command with `--format json` has a schema that says what each field means; the real answers are elsewhere.

`judged_answers.py` holds what commands print in all other tests against these schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from assay.cli.app import app
from assay.cli.verbs.schema import ANSWERS, format_answer_schema
from tests.support.judged_answers import find_command, find_shape
from tools.reference.answer_pages import find_file_name
from tools.reference.command_reference import CommandHelp, read_commands

SCHEMAS = {find_file_name(command): json.loads(format_answer_schema(command)) for command in ANSWERS}


def list_json_commands(commands: Iterable[CommandHelp]) -> Iterator[str]:
    """Yield the commands that take `--format json`, without `assay`."""
    for command in commands:
        if any(re.match(r"--format\b.*\bjson\b", title) for title, _ in command.options):
            yield command.name.removeprefix("assay ")
        yield from list_json_commands(command.commands)


def list_objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield each part of a schema that has fields."""
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from list_objects(part)
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield schema


def test_every_command_that_answers_in_json_has_a_schema() -> None:
    found = list_json_commands(read_commands())
    assert sorted(found) == sorted(ANSWERS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_and_closed_and_says_what_each_field_means(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    silent, open_ = [], []
    for part in list_objects(schema):
        silent += [
            f"{part['title']}.{field}" for field, said in part["properties"].items() if not said.get("description")
        ]
        open_ += [part["title"]] if part.get("additionalProperties", True) is True else []
    assert (silent, open_) == ([], [])


def test_the_schema_of_a_command_is_printed_and_all_are_listed() -> None:
    printed = CliRunner().invoke(app, ["schema", "tickets", "done"])
    assert json.loads(printed.stdout) == SCHEMAS[find_file_name("tickets done")]
    listed = CliRunner().invoke(app, ["schema"]).stdout.splitlines()
    assert [line[: line.index("  ")] for line in listed] == sorted(ANSWERS)


def test_a_command_without_a_schema_is_refused_with_a_hint() -> None:
    refused = CliRunner().invoke(app, ["schema", "stauts"])
    assert "there is no schema of `assay stauts`" in str(refused.exception)


def test_an_answer_that_does_not_fit_is_found() -> None:
    good = {"recorded": True, "message": "noted"}
    assert find_command(["tickets", "--fleet", "x", "done", "1"]) == "tickets done"
    assert find_shape("tickets done", good) == "WorkDoneAnswer"
    for bad in ({"recorded": True}, {**good, "more": 1}, {**good, "recorded": "yes"}):
        with pytest.raises(AssertionError, match="does not fit"):
            find_shape("tickets done", bad)
