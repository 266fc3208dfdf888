"""A run's outcomes as JSON, a line each, as they are read: a million of them need no memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

from assay.harness.results.result import Result


def jsonl(result: Result) -> Iterator[str]:
    """Yield a line for each outcome; `run` says of which run."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    run = result.run.id
    for outcome in result.outcomes():
        yield encode({"run": run, **outcome.as_json()})
