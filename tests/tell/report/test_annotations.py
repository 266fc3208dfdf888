"""GitHub's workflow commands end where they should, whatever the text says."""

from __future__ import annotations

from assay.tell.report.github import escape_annotation, format_annotation


def test_what_would_end_a_command_is_escaped():
    assert escape_annotation("50 %\r\n::x, y", ":,") == "50 %25%0D%0A%3A%3Ax%2C y"
    assert format_annotation("error", {"file": "a,b", "line": 0}, "x\ny") == "::error file=a%2Cb::x%0Ay"
