"""Holds what commands print with `--format json`, in any test, against the schema that is published for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from typer.testing import CliRunner

from assay.cli.app import VERBS
from assay.cli.verbs.schema import ANSWERS, LINES_SIGN
from tests.support.places import ROOT
from tools.reference.answer_pages import find_file_name

FOLDER = ROOT / "docs/reference/answers"
JUDGED: set[tuple[str, str]] = set()
"""The commands whose answers fitted, each with the shape that the answer had."""


def judge_runner() -> None:
    """Let typer's `CliRunner` judge each answer in JSON."""
    invoke = CliRunner.invoke

    def invoke_and_judge(self: CliRunner, app: Any, args: Any = None, *others: Any, **options: Any) -> Any:
        result = invoke(self, app, args, *others, **options)
        if isinstance(args, list | tuple):
            judge_answer([*find_verb(app), *map(str, args)], result.stdout)
        return result

    CliRunner.invoke = invoke_and_judge  # type: ignore[method-assign]


def find_verb(app: Any) -> list[str]:
    """Return the verb whose app a test runs by itself; nothing for the whole of `assay`."""
    modules = {verb: sys.modules.get(known.module) for verb, known in VERBS.items()}
    return [verb for verb, module in modules.items() if getattr(module, f"{verb}_app", None) is app]


def judge_answer(words: Sequence[str], stdout: str) -> None:
    """Fail if an answer in JSON is not what the schema of its command says. `words` come after `assay`."""
    asks = any(pair == ("--format", "json") for pair in pairwise(words))
    command = find_command(words) if asks or "--format=json" in words else None
    if command is None or not stdout.strip():
        return
    for document in read_documents(command, stdout):
        JUDGED.add((command, find_shape(command, document)))


def read_documents(command: str, stdout: str) -> list[Any]:
    """Return what a command has printed: one document, or one on each line where its answer may be lines."""
    try:
        return [json.loads(stdout)]
    except json.JSONDecodeError:
        if not any(shape.endswith(LINES_SIGN) for shape in ANSWERS[command].values()):
            raise
        return [json.loads(line) for line in stdout.splitlines()]


def find_command(words: Sequence[str]) -> str | None:
    """Return the command that has a schema, None for any other."""
    below = (f"{words[0]} {word}" for word in words[1:])
    found = next((command for command in below if command in ANSWERS), words[0])
    return found if found in ANSWERS else None


def find_shape(command: str, document: Any) -> str:
    """Return the name of the shape that a document has. Fails, with the worst mistake, if it has none."""
    shapes = _load_validators(command)
    errors = {name: best_match(validator.iter_errors(document)) for name, validator in shapes.items()}
    fitting = [name for name, error in errors.items() if error is None]
    told = "\n".join(f"{name}: {error.json_path}: {error.message[:400]}" for name, error in errors.items() if error)
    assert fitting, f"`assay {command} --format json` does not fit docs/reference/answers:\n{told}"
    return fitting[0]


def list_unshown() -> list[str]:
    """Return each form of an answer that no test has shown, as `command: shape`."""
    return [
        f"{command}: {name}"
        for command in ANSWERS
        for name in _load_validators(command)
        if (command, name) not in JUDGED
    ]


class ShownAnswers:
    """Says at the end of a run of all tests which answers none of them has shown."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker of xdist: give the answers to the process that started it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["judged"] = sorted(JUDGED)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        JUDGED.update((command, name) for command, name in getattr(node, "workeroutput", {}).get("judged", ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.keyword
        if is_whole and (unshown := list_unshown()):
            terminalreporter.write_line(f"no test has shown these answers in JSON: {', '.join(unshown)}")


@cache
def _load_validators(command: str) -> dict[str, Draft202012Validator]:
    """Return a validator for each shape of a command's answer."""
    schema = json.loads((FOLDER / find_file_name(command)).read_text(encoding="utf-8"))
    forms = {_name_form(form): {**form, "$defs": schema["$defs"]} for form in schema.get("anyOf", [schema])}
    return {name: Draft202012Validator(form) for name, form in forms.items()}


def _name_form(form: dict[str, Any]) -> str:
    return f"{_name_form(form['items'])}[]" if "items" in form else form["$ref"].rpartition("/")[2]
