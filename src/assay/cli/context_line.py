"""Says what a command works on, the fleet or its lab: in the first line of what acts, and in every JSON answer."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from assay.declare.home import Home
from assay.model.facts import to_json
from assay.model.text.safe_text import escape_all_but_styles, escape_line

CHOSEN: ContextVar[Home | None] = ContextVar("the home that this command works on", default=None)
MEANING = {"fleet": "real machines", "lab": "virtual machines only"}


def describe_context(home: Home) -> str:
    """Return what a home stands for, such as `context lab: virtual machines only, of my-fleet`."""
    return f"context {home.context}: {MEANING[home.context]}, of {escape_line(home.root.resolve().name)}"


def print_context(home: Home) -> None:
    """Print it on stderr, or into the log of a service that keeps one."""
    service_log = sys.modules.get("assay.cli.service_log")  # imported by verbs that have one
    if service_log and service_log.has_json_log():
        logging.getLogger("assay").info(describe_context(home))
    else:
        print(describe_context(home), file=sys.stderr, flush=True)  # noqa: T201 — a line for people


def format_answer(document: Any, **how: Any) -> str:
    """Return an answer as JSON, in which an object says `context`; `how` goes to `json.dumps`."""
    document = to_json(document)
    if isinstance(document, dict) and (home := CHOSEN.get()):
        document = {**document, "context": home.context}
    return json.dumps(document, **how)


def print_answer(document: Any, form: str, lines: Iterable[str]) -> None:
    """Print an answer: as JSON, or its lines for people, by their pager if they are more than a terminal shows."""
    text = format_answer(document, indent=1, ensure_ascii=False) if form == "json" else "\n".join(lines)
    if form != "json" and sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        import pydoc

        os.environ.setdefault("LESS", "FRX")  # colours pass, and what was shown stays, as with git
        pydoc.pager(escape_all_but_styles(text))
    else:
        print(text)  # noqa: T201 — the answer
