"""Reads a file of jobs: one JSON object per line, with the start, the nodes and the hours of one job."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from assay.model.errors import AssayError
from assay.trends.replay.history_lines import (
    InvalidLineError,
    parse_history_time,
    read_json_lines,
    read_name,
    show_value,
)
from assay.trends.replay.jobs_hit import RecordedJob

EXAMPLE_JOB = '{"start": 0, "nodes": ["n0001", "n0002"], "hours": 12}'
MAX_HOURS = 24.0 * 3660


def read_jobs(lines: Iterable[bytes], name: str, in_seconds: bool) -> list[RecordedJob]:
    """Return the jobs in these lines. `in_seconds`: the history counts in seconds, so the jobs must do so too.

    Raises AssayError for a bad line, and for times of another form than the history's.
    """
    jobs, form = [], "seconds" if in_seconds else "ISO 8601"
    for number, (plain, job) in enumerate(read_json_lines(lines, name, _read_job, EXAMPLE_JOB, "start"), 1):
        if number == 1 and isinstance(plain["start"], str) is in_seconds:
            fix = f"write both in {form}, counted from the same moment"
            raise AssayError(f"the jobs' times are not in {form}, as the history's are", where=name, fix=fix)
        jobs.append(job)
    return jobs


def _read_job(plain: dict[str, Any], _: int) -> RecordedJob:
    start, nodes = parse_history_time(plain.get("start"), "start"), plain.get("nodes")
    hours: Any = plain.get("hours")
    if not isinstance(nodes, list) or not nodes:
        raise InvalidLineError(f"nodes is {show_value(nodes)}", f"a list of names: {EXAMPLE_JOB}")
    if type(hours) not in (int, float) or not math.isfinite(hours) or not 0 < hours <= MAX_HOURS:
        raise InvalidLineError(f"hours is {show_value(hours)}", "a number above 0: how long the job ran")
    names = tuple(dict.fromkeys(read_name(node, "nodes", EXAMPLE_JOB, needed=True) for node in nodes))
    return RecordedJob(start, start + timedelta(hours=hours), names)
