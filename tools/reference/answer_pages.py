"""The published schemas of all answers, and the page that lists them: files below docs/reference/."""

from __future__ import annotations

from collections.abc import Iterator

from assay.cli.verbs.schema import ANSWERS, Answer, describe_form, format_answer_schema

PAGE, FOLDER = "docs/reference/answers.md", "docs/reference/answers"
INTRODUCTION = """# Answers in JSON

With `--format json`, a command prints one JSON document on stdout, and nothing else. Each answer has a
[JSON Schema](https://json-schema.org/) (draft 2020-12), which says what each field means, its unit, and what null
means. `assay schema` lists the commands, and `assay schema status` prints the schema of `assay status`. It needs no
fleet repository and no network.

The schemas are generated from the code that makes the answers (`make schemas`). Tests hold real answers against them.

- A schema is of the version of assay that it came with. It lists all fields, and permits no others. A later version may
  add fields: a program should ignore those that it does not know. CHANGELOG.md names fields that change or go.
- Times are texts in ISO 8601. A field whose type names null can be null; the field's text says when.
- If a command cannot do its work (exit code 2), it prints nothing on stdout, unless the table names an answer for it.
- Some answers have several forms. The table says when each comes.

| command | schema | what it holds |
|---|---|---|
"""


def find_file_name(command: str) -> str:
    """Return the name of the file with the schema of a command."""
    return f"{command.replace(' ', '-')}.json"


def build_answer_files() -> dict[str, str]:
    """Return every file by its path: each schema, and the page."""
    schemas = {f"{FOLDER}/{find_file_name(command)}": format_answer_schema(command) for command in ANSWERS}
    return {PAGE: _format_page(), **schemas}


def _format_page() -> str:
    rows = "\n".join(_format_row(command, answer) for command, answer in sorted(ANSWERS.items()))
    return f"{INTRODUCTION}{rows}\n"


def _format_row(command: str, answer: Answer) -> str:
    file = find_file_name(command)
    told = " ".join(_describe_forms(answer))
    return f"| `assay {command}` | [{file}](answers/{file}) | {told} |"


def _describe_forms(answer: Answer) -> Iterator[str]:
    """Yield a sentence for each form, with the words that say when it comes."""
    for when, shape in answer.items():
        comes = f"{when[:1].upper()}{when[1:]}: " if when else ""
        yield f"{comes}{describe_form(shape)}"
