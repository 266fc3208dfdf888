"""The file of a search: a header with what was asked, then one line for each result, whole and on disk at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.facts import fact, from_json, to_json
from assay.validate.collectives.judging import SpeedRule
from assay.validate.collectives.results import GroupResult, PairResult, read_results
from assay.validate.collectives.search import SearchResults, StageSettings

FORMAT = 1


@fact
class SearchHeader:
    """What a search was asked: the nodes, the seed, the design's name ("" for none), the rails, the rule, the stages.

    `rails` is empty if all rails of a pair are measured together.
    """

    nodes: tuple[str, ...]
    seed: int
    design: str
    rails: tuple[int, ...]
    rule: SpeedRule
    stages: StageSettings = field(default=StageSettings())


def parse_header(line: Mapping[str, Any]) -> SearchHeader:
    """Return the header of a parsed line. Raises ValueError if it is of another form."""
    try:
        if line["collectives"] != FORMAT:
            raise ValueError(f"the form {line['collectives']} is not known; this assay knows {FORMAT}")
        return from_json(SearchHeader, line)
    except (KeyError, TypeError) as error:
        raise ValueError("a field of the header is missing or wrong") from error


class ResultFile:
    """Results at `path`. Opening it removes a last line that is not whole: the process that wrote it was killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[SearchHeader | None, SearchResults]:
        """Return the header, None without one, and all results. Raises AssayError for a line that is no result."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            fix = "name a file that `assay collectives run` wrote, or that has a result in each line"
            raise AssayError(f"the results cannot be read: {error.strerror}", where=str(self.path), fix=fix) from None
        return self._read_header(lines), SearchResults(*read_results(lines, str(self.path)))

    def continue_or_start(self, header: SearchHeader) -> tuple[SearchHeader, SearchResults]:
        """Return header and results of an interrupted search, or write the header of a new one."""
        if self.path.exists() and self.path.stat().st_size:
            self._drop_torn_line()
            known, results = self.read()
            if known is None:
                fix = "name a new file; `assay collectives explain` reads this one"
                raise AssayError(
                    "this file has no header, so its search cannot continue", where=str(self.path), fix=fix
                )
            return known, results
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._append({"collectives": FORMAT, **to_json(header)})
        return header, SearchResults(())

    def append(self, result: PairResult | GroupResult) -> None:
        """Store a result."""
        self._append(to_json(result))

    def _append(self, line: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read_header(self, lines: Sequence[str]) -> SearchHeader | None:
        first = next((line for line in lines if line.strip()), "")
        try:
            fields = json.loads(first)
            return parse_header(fields) if isinstance(fields, dict) and "collectives" in fields else None
        except json.JSONDecodeError:
            return None  # read_results says so, with the line
        except ValueError as error:
            raise AssayError(f"the header cannot be read: {error}", where=f"{self.path}:1") from None

    def _drop_torn_line(self) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
