"""The generated pages: each field has a meaning; committed pages and pictures are current."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from assay.declare.schemas import build_schemas, build_spec_schema, describe_fields, list_models_below
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SPEC_KINDS, SpecDocument, StrictModel, load_spec_model
from tests.support.places import ROOT
from tools.reference.field_types import find_unit, format_default, format_type
from tools.reference.generated_files import DRAWINGS, build_reference, write_reference

TOPS: list[type[BaseModel]] = [*map(load_spec_model, SPEC_KINDS), NodeVariables]
MODELS = {model: None for top in TOPS for model in list_models_below(top)}


@pytest.fixture(scope="module")
def built() -> dict[str, str]:
    return build_reference(ROOT)


def test_every_field_of_every_file_says_what_it_means() -> None:
    silent = [
        f"{model.__name__}.{name}" for model in MODELS for name, text in describe_fields(model).items() if not text
    ]
    assert silent == [], 'say it in the class\'s docstring, as "`field`: what it means."'


def test_the_committed_pages_and_pictures_are_those_of_the_models(built: dict[str, str]) -> None:
    old = [path for path, text in built.items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert old == [], "run `make schemas`"
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/reference").rglob("*.*")}
    assert pages == {path for path in built if path.startswith("docs/reference/")}


def test_every_kind_has_a_page_with_an_example_and_is_in_the_index(built: dict[str, str]) -> None:
    index = built["docs/reference/README.md"]
    for kind in SPEC_KINDS:
        name = re.search(rf"\[{kind}\]\((\S+)\)", index)
        assert name, kind
        page = built[f"docs/reference/{name[1]}"]
        assert f"kind: {kind}\n" in page.partition("## Example")[2]


def test_every_link_of_a_page_leads_somewhere(built: dict[str, str]) -> None:
    texts = {**built, "docs/fabric-design.md": (ROOT / "docs/fabric-design.md").read_text(encoding="utf-8")}
    for path, text in texts.items():
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text) if path.endswith(".md") else ():
            file, _, anchor = target.partition("#")
            page = (ROOT / path).parent / file if file else ROOT / path
            assert page.is_file(), (path, target)
            titles = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
            assert not anchor or anchor in {title.lower().replace(" ", "-") for title in titles}, (path, target)


def test_a_page_of_a_kind_that_is_gone_is_removed(tmp_path: Path) -> None:
    for folder in ("inventory", "specs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/faults.md", tmp_path / "docs")
    left = [tmp_path / "docs/reference/gone.md", tmp_path / "docs/reference/answers/gone.json"]
    left[1].parent.mkdir(parents=True)
    for one in left:
        one.write_text("# Gone")
    write_reference(tmp_path)
    assert not any(one.exists() for one in left)
    assert len(list(left[0].parent.glob("*.md"))) == len(SPEC_KINDS) + 3


def test_the_pictures_are_readable_and_show_the_design(built: dict[str, str]) -> None:
    for name in DRAWINGS:
        ET.fromstring(built[f"docs/{name}"])
    assert all(f">leaf-su01-r{rail}<" in built["docs/fabric-tiers.svg"] for rail in range(8))
    assert "n0001 … n0020, in the order of `nodes`" in built["docs/fabric-ports.svg"]
    assert built["docs/fabric-ports.svg"].count(">to spine-04<") == 2
    assert built["docs/fabric-gaps.svg"].count(">free<") == 1


class Sample(SpecDocument):
    """A sample. `loose` is named in a sentence.

    - `first`, `second` (both): two fields. `third`: one field;
      on two lines. `fourth` is told in a sentence after a label.
    """

    loose: str = "x"
    first: int = Field(default=3, gt=0, le=9)
    second: list[Annotated[float, Field(ge=1)]] = Field(default=[])
    third: dict[str, Literal["a", "b"]] = Field(default={})
    fourth: bool | None = None
    described: str = Field(default="", description="its own words")
    silent_hours: float


@pytest.mark.parametrize(
    ("field", "meaning"),
    [
        ("loose", "`loose` is named in a sentence."),
        ("first", "Two fields."),
        ("second", "Two fields."),
        ("third", "One field; on two lines."),
        ("fourth", "`fourth` is told in a sentence after a label."),
        ("described", "Its own words."),
        ("silent_hours", ""),
        ("owner", "The team that answers for it."),
    ],
)
def test_the_meaning_of_a_field_comes_from_docstrings_and_descriptions(field: str, meaning: str) -> None:
    assert describe_fields(Sample)[field] == meaning


@pytest.mark.parametrize(
    ("field", "kind", "default"),
    [
        ("first", "whole number > 0, ≤ 9", "`3`"),
        ("second", "list of number ≥ 1", "–"),
        ("third", "`a` or `b`, by name", "–"),
        ("fourth", "true or false", "–"),
        ("silent_hours", "number", "required"),
    ],
)
def test_types_and_defaults_are_words(field: str, kind: str, default: str) -> None:
    assert format_type(Sample.model_fields[field]) == kind
    assert format_default(Sample.model_fields[field]) == default


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("wait_hours", "hours"), ("hours", "hours"), ("size_gb", "GB"), ("mib_per_minute", "MiB/min"), ("u", ""),
        ("height_u", "rack units"), ("reboots_per_hour", "1/h"), ("per_minute", "1/min"), ("fans", ""),
    ],
)  # fmt: skip
def test_the_unit_of_a_field_is_in_its_name(name: str, unit: str) -> None:
    assert find_unit(StrictModel, name) == unit


def test_editors_show_the_same_descriptions() -> None:
    schema = build_spec_schema(NodeSpec)
    for part in ("NodeSpec", "NodeSpec.layer"):
        assert "rack units" in str(schema["$defs"][part]["properties"]["height_u"])
    bare = [
        f"{file}: {name}.{field}"
        for file, schema in build_schemas().items()
        for name, part in schema["$defs"].items()
        for field, said in part.get("properties", {}).items()
        if not name.endswith(".layer") and name != "Group" and "description" not in said
    ]
    assert bare == []
