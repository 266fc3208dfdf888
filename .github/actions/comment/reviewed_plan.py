"""Notes at the merged commit with which plan it was reviewed: the last one of its pull request's comment.

`assay reconcile` holds the merge to this plan. The note stays in this clone. Without a pull request, without a comment,
or without the right to read it, nothing is noted: then the policy says whether a rollout may start.
"""

from __future__ import annotations

import os
import re
import subprocess
import urllib.error

from comment import ask, comments, end_unless_refused, is_ours, say

MARKER = "<!-- assay plan -->"
LINE = re.compile(r"^Assay-Plan: sha256:[0-9a-f]{64}(?: at [0-9]{1,18})?$", re.MULTILINE)
IDENTITY = ("-c", "user.name=assay", "-c", "user.email=assay@localhost")


def main(commit: str) -> None:
    """Write the note of a commit."""
    try:
        number = merged_by(commit)
        line = reviewed(number) if number else ""
    except urllib.error.URLError as error:
        end_unless_refused(error)
        say("::notice title=No reviewed plan::This token cannot read pull requests.")
        return
    if not line:
        say(f"no comment of a pull request has a plan for {commit}")
        return
    words = ["git", *IDENTITY, "notes", "--ref=refs/notes/assay-plan", "add", "--force", "--message", line, commit]
    subprocess.run(words, check=True)
    say(f"reviewed in pull request {number}: {line}")


def merged_by(commit: str) -> int:
    """Return the pull request whose merge made the commit, 0 if there is none."""
    found = ask("GET", f"/commits/{commit}/pulls")
    return next((int(one["number"]) for one in found if one["merge_commit_sha"] == commit), 0)


def reviewed(number: int) -> str:
    """Return the line with the plan's digest, "" without one."""
    ours = next((one for one in comments(number) if is_ours(one, MARKER)), None)
    line = LINE.search(ours["body"].replace("\r\n", "\n")) if ours else None
    return line[0] if line else ""


if __name__ == "__main__":
    main(os.environ["GITHUB_SHA"])
