"""Where outcomes go as soon as there are any: chosen once at the start of a session, from its options."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from assay.model.errors import Trouble
from assay.model.outcome import Outcome

Deliver = Callable[[Outcome], None]
ENCODED = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder each time


class Lines:
    """Appends one JSON line per outcome to a file; what was delivered before a kill stays.

    Check and subject of what the user left out with -k, -m or --deselect stand in a file beside it.
    """

    def __init__(self, file: Path) -> None:
        self._stream = file.open("a")
        self._left_out = file.with_suffix(".left-out")

    def __call__(self, outcome: Outcome) -> None:
        """Write an outcome down."""
        self._stream.write(ENCODED(outcome.as_json()) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def left_out(self, names: Iterable[tuple[str, str]]) -> None:
        """Write down what nobody shall miss."""
        with self._left_out.open("a") as file:
            file.writelines(json.dumps(name) + "\n" for name in names)


def delivery(config: pytest.Config) -> Lines | None:
    """Return what takes the outcomes of a session, None where the user keeps none. Raises Trouble."""
    given = config.getoption("--outcomes")
    try:
        return Lines(Path(given)) if given else None
    except OSError as error:
        fix = "name a file in a folder that you may write to"
        raise Trouble(f"the outcomes cannot be kept: {error.strerror}", where=given, fix=fix) from None
