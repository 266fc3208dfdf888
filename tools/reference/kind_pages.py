"""The reference page of each kind of spec, of the inventory's variables, and their index, in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

from assay.declare.schemas import describe_fields, list_models_below, list_paragraphs, to_kebab_case
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SPEC_KINDS, SpecDocument, load_spec_model
from tools.reference.example_excerpts import find_example, find_inventory_example, list_spec_files
from tools.reference.field_types import find_unit, format_default, format_type, is_number

FOLDER = "docs/reference"
INDEX, INVENTORY = "README.md", "inventory.md"
LINE_WIDTH = 120
SHORT_MEANING = 60
"""Longer sentences that explain several fields stand only at the first of them."""
HEADER = ("| field | type | unit | default | meaning |", "|---|---|---|---|---|")
INDEX_NOTE = """These pages are generated from the models that read the files (`make schemas`). Editors show the same
texts, through the schemas in `specs/schemas/`."""
INVENTORY_NOTE = """An inventory file is Ansible's own YAML: pools are groups, nodes are hosts. A variable of a group
holds for all its hosts. Variables that are not listed here are Ansible's, the site's or a plug-in's."""
COMMON_FIELDS = tuple(SpecDocument.model_fields)
SEE_ALSO = {"FabricDesign": "[The design language](../fabric-design.md) explains the wiring with pictures."}


def build_pages(root: Path) -> dict[str, str]:
    """Return every page by its file name. The examples are cut from the files below `root`."""
    pages = {f"{to_kebab_case(kind)}.md": _format_kind_page(kind, root) for kind in SPEC_KINDS}
    return {INDEX: _format_index(root), INVENTORY: _format_inventory_page(root), **pages}


def _format_index(root: Path) -> str:
    lines = [
        "# Reference of the fleet repository",
        "",
        *_wrap(INDEX_NOTE),
        "",
        "| kind | declares | example |",
        "|---|---|---|",
        f"| [inventory](inventory.md) | {_first_sentence(NodeVariables)} | `inventory/` |",
    ]
    for kind in SPEC_KINDS:
        page = f"[{kind}]({to_kebab_case(kind)}.md)"
        lines.append(f"| {page} | {_first_sentence(load_spec_model(kind))} | `{_find_folder(root, kind)}` |")
    extends = " ".join(list_paragraphs(SpecDocument)[1].split())
    common = "A spec is a YAML file below `specs/`, with one document. Every kind has these fields:"
    lines += ["", "## Fields of every kind", "", common, "", *_table(SpecDocument, COMMON_FIELDS), "", *_wrap(extends)]
    return "\n".join(lines) + "\n"


def _find_folder(root: Path, kind: str) -> str:
    path = next(path for path, spec in list_spec_files(root) if spec.get("kind") == kind)
    folder = path.rpartition("/")[0]
    return f"{folder}/" if folder != "specs" else path


def _format_kind_page(kind: str, root: Path) -> str:
    model = load_spec_model(kind)
    path, example = find_example(root, kind)
    note = f"`{path}`, shortened: long lists and mappings have two entries here."
    fields = [name for name in model.model_fields if name not in COMMON_FIELDS]
    common = "[Every kind](README.md#fields-of-every-kind) also has `kind`, `name`, `extends`, `description`, `owner`."
    lines = [f"# {kind}", "", *_describe(model), *([SEE_ALSO[kind], ""] if kind in SEE_ALSO else [])]
    lines += ["## Fields", "", *_table(model, fields), "", common]
    lines += [line for part in list_models_below(model)[1:] for line in _format_part(part)]
    lines += ["", "## Example", "", note, "", "```yaml", example.rstrip("\n"), "```"]
    return "\n".join(lines) + "\n"


def _format_inventory_page(root: Path) -> str:
    path, example = find_inventory_example(root)
    lines = ["# Inventory", "", *_describe(NodeVariables)]
    lines += [*_wrap(INVENTORY_NOTE), ""]
    lines += ["## Variables of a node", "", *_table(NodeVariables, NodeVariables.model_fields)]
    lines += [line for part in list_models_below(NodeVariables)[1:] for line in _format_part(part)]
    lines += ["", "## Example", "", f"`{path}`, with one host of each group.", ""]
    lines += ["```yaml", example.rstrip("\n"), "```"]
    return "\n".join(lines) + "\n"


def _format_part(model: type[BaseModel]) -> Iterator[str]:
    yield from ("", f"### {model.__name__}", "", *_describe(model), *_table(model, model.model_fields))


def _describe(model: type[BaseModel]) -> Iterator[str]:
    """Yield the paragraphs of a docstring that do not only explain single fields, each followed by a blank line."""
    first, *others = list_paragraphs(model)
    for paragraph in (first, *(other for other in others if not _is_about_fields(other, model))):
        yield from (*_wrap(paragraph), "")


def _table(model: type[BaseModel], fields: Iterable[str]) -> Iterator[str]:
    yield from HEADER
    meanings, told = describe_fields(model), dict[str, str]()
    for name in fields:
        field = model.model_fields[name]
        first = told.setdefault(meanings[name], name)
        is_repeated = first != name and len(meanings[name]) > SHORT_MEANING
        meaning = f"See `{first}`." if is_repeated else meanings[name]
        unit = find_unit(model, name) if is_number(field.annotation) else ""
        cells = (f"`{name}`", format_type(field), unit, format_default(field), meaning)
        escaped = [cell.replace("|", r"\|") for cell in cells]
        yield f"| {' | '.join(escaped)} |"


def _is_about_fields(paragraph: str, model: type[BaseModel]) -> bool:
    """Whether a paragraph says what single fields mean, so that their descriptions repeat it."""
    return any(f"`{name}`" in paragraph for name in model.model_fields)


def _first_sentence(model: type[BaseModel]) -> str:
    return list_paragraphs(model)[0].split(". ")[0].rstrip(".") + "."


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, LINE_WIDTH, break_long_words=False, break_on_hyphens=False)
