"""Which command lines a tool of a virtual node takes: those that the real tool takes, from `options.json`.

Each entry there names its source, the vendor's own, and either `options` with the form of their values ("" for a
switch) and of the other `words`, or `forms`: the lines that a shell script may answer without Python. It says how the
real tool `refuses` all else: exit code, stream and text. Some take a few options less than the real tool, never more.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

VALUES = {"N": r"\d+", "SIZE": r"\d+[KMGkmg]?", "TEXT": r"(?s:.+)"}


@cache
def read_command_lines() -> Mapping[str, Any]:
    """Return the entries, by tool, or by tool and its first word."""
    with open(f"{__file__.rpartition('/')[0]}/options.json") as file:  # noqa: PTH123 — tools start often: few imports
        entries: Mapping[str, Any] = json.load(file)
    return entries


def parse_words(tool: str, words: Sequence[str]) -> dict[str, str]:
    """Return the values of the options, by each name of the option. End as the real tool does if it refuses a word."""
    entries = read_command_lines()
    is_subcommand = f"{tool} {words[0]}" in entries if words else False
    entry = entries[f"{tool} {words[0]}" if is_subcommand else tool]
    names = {
        name: (option.split(), form) for option, form in entry.get("options", {}).items() for name in option.split()
    }
    values: dict[str, str] = {}
    left = iter(words[1:] if is_subcommand else words)
    for word in left:
        name, has_value, text = word.partition("=") if word.startswith("--") else (word, "", "")
        aliases, form = names.get(name, ([], None))
        if form is None:
            is_fine = not word.startswith("-") and _fits(entry.get("words"), word)
        elif form:
            text = text if has_value else next(left, "")
            is_fine = _fits(form, text)
        else:
            is_fine = not has_value
        if not is_fine:
            _refuse(entry["refuses"], word)
        values |= dict.fromkeys(aliases, text)
    return values


def _fits(form: str | None, text: str) -> bool:
    return form is not None and re.fullmatch(VALUES.get(form, form), text) is not None


def _refuse(how: Sequence[Any], word: str) -> NoReturn:
    code, stream, text = how
    getattr(sys, stream).write(f"{text.replace('{word}', word)}\n")
    sys.exit(code)


def write_form_check(tool: str, *, otherwise: str = "") -> str:
    """Return lines of sh that let only the forms of a tool pass. `otherwise` is for those that Python answers."""
    entry = read_command_lines().get(tool, {})
    if "forms" not in entry:
        return ""
    code, stream, text = entry["refuses"]
    refusal = f"printf '%s\\n' '{text}' >&{1 if stream == 'stdout' else 2}; exit {code}"
    return f'case "$*" in {"|".join(_quote_forms(entry["forms"]))}) ;; *) {otherwise or refusal} ;; esac\n'


def _quote_forms(forms: Sequence[str]) -> Iterator[str]:
    return (form.replace(" ", "\\ ") for form in forms)
