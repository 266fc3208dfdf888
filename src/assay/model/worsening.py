"""What gets worse, as a page of its own, and as the rows that other pages show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from assay.model.rendering import render_page
from assay.model.trend_course import SIZE, DrawnCourse, draw_course

Answer = Mapping[str, Any]
"""The stored answer of `assay trends`, as JSON has it, with `at`."""
Rows = list[tuple[str, list[tuple[Answer, DrawnCourse | None]]]]


def render_worsening(answer: Answer, *, in_lab: bool = False) -> str:
    """Return the HTML of a page that needs no server."""
    groups = group_rows(answer)
    return render_page(
        __package__,
        "worsening_page.html.j2",
        in_lab=in_lab,
        answer=answer,
        groups=groups,
        size=SIZE,
        node_link=lambda _: "",
    )


def group_rows(answer: Answer) -> Rows:
    """Return the warnings with their pictures, by the group that explains them; those of no group stand last."""
    groups: dict[str, list[tuple[Answer, DrawnCourse | None]]] = defaultdict(list)
    for one in answer["warnings"]:
        groups[one["group"]].append((one, draw_course(one)))
    return sorted(groups.items(), key=lambda item: (not item[0], item[0]))
