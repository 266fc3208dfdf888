"""Our reasons in Slurm, and how they are known again: by the controller and by the hooks on a node.

Slurm keeps one reason a node, and whoever drains on top, or edits it, replaces it. So each of ours ends with a mark
made of its own words: `assay: gpu.missing on h100-a/n0007/gpu3 #3f2a`. Where words and mark do not fit, somebody has
had a hand in it, and it is no longer ours to undo.
"""

from __future__ import annotations

import hashlib

PREFIX = "assay:"
LONGEST = 400


def sealed(text: str) -> str:
    """Return our reason with its mark, on one line and without what scontrol would read as its own."""
    plain = "".join(letter if letter.isprintable() else " " for letter in _behind(text).replace('"', "'"))
    words = " ".join(plain.replace("\\", "/").split())[:LONGEST].rstrip()
    return f"{words} #{_mark(words)}"


def told(reason: str, who: str = "") -> str:
    """Return a reason as people and the lifecycle are shown it: ours without its mark, behind our prefix.

    One behind our prefix that is not wholly ours is told as somebody else's, with `who` wrote it last.
    """
    words, _, mark = reason.rpartition(" #")
    if words.startswith(PREFIX) and mark == _mark(words):
        return words
    return f"set or changed by {who or 'somebody'}: {reason}" if reason.startswith(PREFIX) else reason


def wholly_ours(reason: str) -> bool:
    """Say whether a reason is as we wrote it."""
    return told(reason).startswith(PREFIX)


def _behind(text: str) -> str:
    return text if text.startswith(PREFIX) else f"{PREFIX} {text}"


def _mark(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:4]
