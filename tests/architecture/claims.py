"""Finds the sentences that promise a time, a size, a share, a bound, a default or an effect: in pages, help, policies.

Such a sentence has a number with a unit, such as `5 minutes`, `four hours`, `64 MiB` or `93 %`; a bound, such as
`at most 500` or `within two`; one of the words `by default`, `never` and `always`; or an effect that people rely on:
what assay does to a node or to what it recorded (`assay cordons`, `is withdrawn`), what is refused or told, and what
stays. A cell of a table is a sentence. What stands in fences (samples) is none: tests type it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.test_documentation import list_written_pages
from tests.support.places import ROOT

NUMBER = r"(\d[\d,.]*|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|half an?|a third of a)"
UNIT = r"(ms|s|seconds?|min|minutes?|h|hours?|days?|weeks?|months?|%|percent|[kMG]B|[KMGT]iB|bytes?|cores?)"
PROMISE = re.compile(
    rf"(?<![\w.,-]){NUMBER}\s{UNIT}(?![\w-])"
    r"|(?<![\w.-])\d+(ms|s|m|h|d)\b"
    rf"|\b(at (most|least)|more than|fewer than|less than|no longer than|up to|beyond) {NUMBER}\b"
    rf"|\bwithin {NUMBER}\b"
    r"|\b(by default|never|always)\b"
    r"|\bassay (also |first )?(cordons|drains|withdraws|removes|deletes|erases|wipes|undoes|opens|leaves)\b"
    r"|\b(assay|plan|command|lab|it) (then )?refuses\b"
    r"|\b(is|are) (refused|told|withdrawn|undone|erased|wiped|deleted|revoked|cordoned)\b"
    r"|\bstays?( (in|out|as|free|there|deleted|closed|chosen|valid|while)\b|[.,;:]|$)"
    r"|\bdoes not (restart|act|open|move|wipe)\b",
    re.IGNORECASE,
)
OF_DEVELOPERS = {"ARCHITECTURE.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"}
POLICY_TEXTS = ("lifecycle", "burnin", "schedules", "gates", "profiles", "collectives", "checklists", "provisioning")
"""Folders of specs whose texts people and customers read."""
NO_TEXT = {"source", "sources", "command", "cron", "name", "kind", "owner"}
CUSTOMER_CODE = "src/assay/tell/customer"


def find_promises() -> list[tuple[str, str]]:
    """Return each sentence that promises something, with its file, in the order of the files."""
    pages = [page for page in list_written_pages() if page.name not in OF_DEVELOPERS]
    found: dict[tuple[str, str], None] = {}
    for page in [*pages, ROOT / "docs/commands.md"]:
        found |= dict.fromkeys(_place(page, split_page(page.read_text(encoding="utf-8"))))
    for folder in POLICY_TEXTS:
        for file in sorted((ROOT / "specs" / folder).glob("*.yaml")):
            found |= dict.fromkeys(_place(file, _list_texts(yaml.safe_load(file.read_text(encoding="utf-8")))))
    for file in sorted((ROOT / "specs/faults").glob("*.yaml")):
        catalogue = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        found |= dict.fromkeys(_place(file, list_customer_texts(catalogue)))
    for file in sorted((ROOT / CUSTOMER_CODE).rglob("*.py")):
        found |= dict.fromkeys(_place(file, _list_constants(ast.parse(file.read_text(encoding="utf-8")))))
    return list(found)


def _place(file: Path, texts: Iterator[str]) -> Iterator[tuple[str, str]]:
    name = file.relative_to(ROOT).as_posix()
    yield from ((name, text) for text in texts if PROMISE.search(text))


def split_page(page: str) -> Iterator[str]:
    """Yield the sentences and cells of a Markdown page, each on one line."""
    prose = re.sub(r"(?ms)^[ ]*```.*?^[ ]*```[ ]*$", "\n", page)
    for block in re.split(r"\n\s*\n", prose):
        for item in re.split(r"\n(?=\s*(?:[-*#|]|\d+\.)\s?)", block):
            text = " ".join(item.split())
            if text.startswith("|"):
                yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", text.strip("|")))
            else:
                yield from split_sentences(re.sub(r"^([-*]|#+|\d+\.) ", "", text))


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text. One ends with a mark before a capital letter, a code, a link or a figure."""
    return [part for part in re.split(r"(?<=[.!?:;])\s+(?=[\"“`*(\[]*[A-Z0-9`])", text) if part]


def _list_texts(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, below in part.items():
            if key not in NO_TEXT:
                yield from _list_texts(below)
    elif isinstance(part, list):
        for below in part:
            yield from _list_texts(below)
    elif isinstance(part, str) and " " in part:
        yield from split_sentences(" ".join(part.split()))


def list_customer_texts(part: Any) -> Iterator[str]:
    """Yield the sentences for customers of a catalogue of faults."""
    if isinstance(part, dict):
        for key, below in part.items():
            yield from _list_texts(below) if key == "for_customers" else list_customer_texts(below)
    elif isinstance(part, list):
        for below in part:
            yield from list_customer_texts(below)


def _list_constants(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings."""
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from split_sentences(node.value)


def read_words(file: str) -> str:
    """Return the words of a file on one line, without Markdown's bold, so that a quotation is found across lines."""
    return " ".join((ROOT / file).read_text(encoding="utf-8").replace("**", "").split())
