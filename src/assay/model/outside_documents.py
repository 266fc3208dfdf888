"""Says what is wrong with a document from outside, and where in it: `alerts.0.startsAt: Field required`.

pydantic judges what becomes objects: calls of webhooks, reports, batches, cases. Readings are a tree of any depth, and
no model describes them: `evidence.schema.json` does, and jsonschema judges what others wrote by it. No message has a
value of the document, which may be a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from assay.model.evidence import encode_canonical_json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError as SchemaMistake
    from pydantic import ValidationError

MOST_MISTAKES = 5
"""Mistakes that are named; a document of another kind has thousands."""
EVIDENCE_SCHEMA_FILE = Path(__file__).with_name("evidence.schema.json")


def describe_mistakes(error: ValidationError, whole: str) -> str:
    """Return the mistakes that pydantic found. `whole` is what the document is called: "the body"."""
    mistakes = error.errors(include_input=False, include_url=False, include_context=False)
    return _join([(mistake["loc"], mistake["msg"]) for mistake in mistakes], whole)


def find_evidence_mistakes(document: Any, part: Literal["", "tree"] = "") -> str:
    """Return what is wrong with an evidence document, or with a `tree` of readings alone; "" for nothing."""
    try:
        plain = json.loads(encode_canonical_json(document))
    except (TypeError, ValueError, RecursionError) as error:
        return f"the document: it is no JSON: {error}"
    mistakes = sorted(_load_judge(part).iter_errors(plain), key=lambda mistake: list(map(str, mistake.absolute_path)))
    return _join([(mistake.absolute_path, _describe(mistake)) for mistake in mistakes], "the document")


@cache
def _load_judge(part: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # 0.1 s, for documents that few commands read

    schema = json.loads(EVIDENCE_SCHEMA_FILE.read_text(encoding="utf-8"))
    return Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]} if part else schema)


def _describe(mistake: SchemaMistake) -> str:
    match mistake.validator:
        case "required":
            return mistake.message  # it has a name of the schema, and nothing of the document
        case "type":
            return f"no {mistake.validator_value}"
        case "const":
            return f"not {mistake.validator_value}"
        case "additionalProperties":
            schema: Any = mistake.schema
            return f"only {', '.join(schema['properties'])} are known"
        case _:
            return f"against {mistake.validator} of the schema"


def _join(mistakes: Iterable[tuple[Iterable[str | int], str]], whole: str) -> str:
    lines = [f"{'.'.join(map(str, place)) or whole}: {problem}" for place, problem in mistakes]
    more = [f"and {len(lines) - MOST_MISTAKES} more"] if len(lines) > MOST_MISTAKES else []
    return "; ".join([*lines[:MOST_MISTAKES], *more])
