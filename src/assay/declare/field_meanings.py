"""What the fields of a model mean: from `Field(description=…)`, or from the docstrings of the model and its bases.

In a docstring, "`field`: text" says what the field means, up to the next such label or the end of the paragraph. A
field without a label has the first sentence that names it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

NAMES = r"`\w[\w: ]*`(?: \([^)]*\))?(?:(?:, | and |, and )`\w[\w: ]*`(?: \([^)]*\))?)*"
LABEL = re.compile(rf"(?:(?<=^)|(?<=[.;)] ))({NAMES}): ")
BULLET = re.compile(r"\n(?:[ ]*\n)+|\n(?=- )")
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\"*{])")
NEXT_FIELD = re.compile(r"(?<=[.?!]) (?=`)")


@cache
def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each field, as sentences; "" where nothing says it."""
    return {name: _describe_field(model, name) for name in model.model_fields}


def find_written_type(annotation: Any, metadata: Iterable[Any]) -> Any:
    """Return the type that people write: a validator may take more than the annotation, and says so in its schema."""
    taken = [getattr(one, "json_schema_input_type", PydanticUndefined) for one in metadata]
    return next((one for one in taken if one not in (PydanticUndefined, Any)), annotation)


def list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from list_models(find_written_type(inner, metadata))
    else:
        for part in get_args(annotation):
            yield from list_models(part)


def list_models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and every model that its fields hold, each once, in the order of the fields."""
    found: dict[type[BaseModel], None] = {}
    waiting = [model]
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found[one] = None
            written = [find_written_type(field.annotation, field.metadata) for field in one.model_fields.values()]
            waiting[:0] = [part for annotation in written for part in list_models(annotation)]
    return list(found)


def list_paragraphs(model: type) -> list[str]:
    """Return the paragraphs and list items of a class's own docstring, each on one line."""
    return [" ".join(part.removeprefix("- ").split()) for part in BULLET.split(inspect.cleandoc(model.__doc__ or ""))]


def _describe_field(model: type[BaseModel], name: str) -> str:
    if text := model.model_fields[name].description:
        return _finish_sentence(text)
    bases = [base for base in model.__mro__ if issubclass(base, BaseModel) and base is not BaseModel]
    return find_meaning([part for base in bases for part in list_paragraphs(base)], name)


def find_meaning(paragraphs: Iterable[str], name: str) -> str:
    """Return what paragraphs say of a field, as sentences; "" if nothing."""
    paragraphs = list(paragraphs)
    labelled = (text for part in paragraphs for names, text in _split_labels(part) if f"`{name}`" in names)
    found = next(labelled, "") or next((text for part in paragraphs for text in _sentences_with(part, name)), "")
    return _finish_sentence(found) if found else ""


def _split_labels(paragraph: str) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each "`field`: text" of a paragraph."""
    _, *pieces = LABEL.split(paragraph)
    for names, text in zip(pieces[::2], pieces[1::2], strict=True):
        yield names, NEXT_FIELD.split(text)[0]


def _sentences_with(paragraph: str, name: str) -> Iterator[str]:
    mention = re.compile(rf"`{name}(?::[^`]*)?`")
    yield from (sentence for sentence in SENTENCE_END.split(paragraph) if mention.search(sentence))


def _finish_sentence(text: str) -> str:
    text = text.strip().rstrip(";,")
    text = text if text.endswith((".", "?", "!", ")")) else f"{text}."
    return text[:1].upper() + text[1:]
