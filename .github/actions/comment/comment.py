"""Keeps one comment on a pull request: `comment.py FILE`, whose first line is an HTML comment that marks it as ours.

Needs Python alone, and the environment of GitHub Actions: GITHUB_API_URL, _REPOSITORY, _EVENT_PATH and _TOKEN.
A pull request from a fork gets a token that cannot write: then the plan stands in the job's summary only.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST = 65_000
"""GitHub takes 65,536 characters; what is cut off is said in the rest."""

CUT = "\n\n… and more: the job's summary has it all.\n"
READ_ONLY = (401, 403, 404)
TRIES, DEADLINE_S = 3, 30.0


def main(file: str) -> None:
    """Write the file's text into the comment that carries its marker, or into a new one."""
    text = Path(file).read_text(encoding="utf-8")
    marker = text.split("\n", 1)[0].strip()
    if not (marker.startswith("<!--") and marker.endswith("-->")):
        sys.exit(f"{file}: the first line must be an HTML comment, by which the comment is found again")
    try:
        say(keep(pull_request(), marker, shortened(text)))
    except urllib.error.URLError as error:
        end_unless_refused(error)
        say("::notice title=No comment::This token cannot write to the pull request; the job's summary says it all.")


def end_unless_refused(error: urllib.error.URLError) -> None:
    """End with what GitHub said, unless it only refused the token."""
    if not isinstance(error, urllib.error.HTTPError):
        sys.exit(f"{os.environ['GITHUB_API_URL']} does not answer: {error.reason}")
    if error.code not in READ_ONLY:
        sys.exit(f"{error.url} answered {error.code}: {error.read().decode(errors='replace')[:500]}")


def keep(number: int, marker: str, text: str) -> str:
    """Edit our comment where there is one, else write one; return which. What is right already stays untouched."""
    ours = next((one for one in comments(number) if is_ours(one, marker)), None)
    if ours is None:
        ask("POST", f"/issues/{number}/comments", {"body": text})
        return "commented"
    if ours["body"] == text:
        return "the comment is right already"
    ask("PATCH", f"/issues/comments/{ours['id']}", {"body": text})
    return "edited the comment"


def is_ours(comment: dict[str, Any], marker: str) -> bool:
    """Tell our comment from one in which a person quotes it."""
    return comment["user"]["type"] == "Bot" and comment["body"].startswith(marker)


def comments(number: int) -> Iterator[dict[str, Any]]:
    """Yield the comments of a pull request, oldest first."""
    page, found = 1, [{}]
    while found:
        found = ask("GET", f"/issues/{number}/comments?per_page=100&page={page}")
        yield from found
        page += 1


def pull_request() -> int:
    """Return the number of the pull request that this run is for."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    return int(event["pull_request"]["number"])


def shortened(text: str) -> str:
    """Return the text, cut at a line's end where it is longer than GitHub takes."""
    if len(text) <= MOST:
        return text
    kept = text[: MOST - len(CUT)]
    return kept[: kept.rindex("\n")] + CUT


def ask(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """Ask GitHub's API. A server that fails is asked again, but for a comment that it may have written."""
    url = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}{path}"
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    for last in [*[False] * (TRIES - 1), True]:
        try:
            request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 — the URL is GitHub's
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.URLError as error:
            if last or method == "POST" or getattr(error, "code", 500) < 500:
                raise
            time.sleep(1)
    return None


def say(text: str) -> None:
    """Tell the job's log."""
    print(text)  # noqa: T201 — this is where it is told


if __name__ == "__main__":
    main(sys.argv[1])
