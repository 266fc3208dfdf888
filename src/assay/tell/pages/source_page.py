"""The page of a file of the fleet repository at a commit, to which rules and limits are linked by line."""

from __future__ import annotations

from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.spec_source import read_spec_lines


def render_source_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page; None without such a commit, or for a file that is none of the fleet's declarations."""
    commit, path = request.path_params["commit"], request.path_params["path"]
    lines = read_spec_lines(records.fleet.root, commit, path)
    if lines is None:
        return None
    return render_frame("source.html.j2", request, commit=commit, path=path, lines=lines)
