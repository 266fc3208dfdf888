"""Which command lines a tool of a virtual node takes: those that the real tool takes, from `options.json`.

Each entry there names its source, the vendor's own, and either `options` with the form of their values ("" for a
switch) and of the other `words`, or `forms`: the lines that a shell script may answer without Python. It says how the
real tool `refuses` all else: exit code, stream and text. Some take a few options less than the real tool, never more.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

VALUES = {"N": r"\d+", "SIZE": r"\d+[KMGkmg]?", "TEXT": r"(?s:.+)"}


@cache
def read_command_lines() -> Mapping[str, Any]:
    """Return the entries, by tool, or by tool and its first word."""
    with open(f"{__file__.rpartition('/')[0]}/options.json") as file:  # noqa: PTH123 — tools start often: few imports
        entries: Mapping[str, Any] = json.load(file)
    return entries


def check_words(tool: str, words: Sequence[str]) -> None:
    """End as the real tool does if it refuses one of the words."""
    entries = read_command_lines()
    is_subcommand = f"{tool} {words[0]}" in entries if words else False
    entry = entries[f"{tool} {words[0]}" if is_subcommand else tool]
    forms = {name: form for option, form in entry.get("options", {}).items() for name in option.split()}
    left = iter(words[1:] if is_subcommand else words)
    for word in left:
        name, has_value, text = word.partition("=") if word.startswith("--") else (word, "", "")
        form = forms.get(name)
        if form is None and not word.startswith("-"):
            form, text = entry.get("words"), word
        elif form and not has_value:
            text = next(left, "")
        if form is None or not re.fullmatch(VALUES.get(form, form), text) or (has_value and not form):
            code, stream, text = entry["refuses"]
            getattr(sys, stream).write(f"{text.replace('{word}', word)}\n")
            sys.exit(code)


def write_form_check(tool: str, *, otherwise: str = "") -> str:
    """Return lines of sh that let only the forms of a tool pass. `otherwise` is for those that Python answers."""
    entry = read_command_lines().get(tool, {})
    if "forms" not in entry:
        return ""
    code, stream, text = entry["refuses"]
    refusal = f"printf '%s\\n' '{text}' >&{1 if stream == 'stdout' else 2}; exit {code}"
    patterns = "|".join(entry["forms"]).replace(" ", "\\ ")
    return f'case "$*" in {patterns}) ;; *) {otherwise or refusal} ;; esac\n'
