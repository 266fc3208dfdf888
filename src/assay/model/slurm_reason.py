"""Our reasons in Slurm, and how they are known again: by the controller and by the hooks on a node.

Slurm keeps one reason a node, and whoever drains on top, or edits it, replaces it. So each of ours ends with a mark
made of its own words: `assay: gpu.missing on h100-a/n0007/gpu3 #3f2a`. Where words and mark do not fit, somebody has
had a hand in it, and it is no longer ours to undo.
"""

from __future__ import annotations

import hashlib

REASON_PREFIX = "assay:"
MAX_REASON_LENGTH = 400


def tag_reason(text: str) -> str:
    """Return our reason with its mark, on one line and without what scontrol would read as its own."""
    plain = "".join(letter if letter.isprintable() else " " for letter in _add_prefix(text).replace('"', "'"))
    words = " ".join(plain.replace("\\", "/").split())[:MAX_REASON_LENGTH].rstrip()
    return f"{words} #{_compute_tag(words)}"


def display_reason(reason: str, who: str = "") -> str:
    """Return a reason as people and the lifecycle are shown it: ours without its mark, behind our prefix.

    One behind our prefix that is not wholly ours is told as somebody else's, with `who` wrote it last.
    """
    words, _, mark = reason.rpartition(" #")
    if words.startswith(REASON_PREFIX) and mark == _compute_tag(words):
        return words
    return f"set or changed by {who or 'somebody'}: {reason}" if reason.startswith(REASON_PREFIX) else reason


def is_untampered(reason: str) -> bool:
    """Say whether a reason is as we wrote it."""
    return display_reason(reason).startswith(REASON_PREFIX)


def _add_prefix(text: str) -> str:
    return text if text.startswith(REASON_PREFIX) else f"{REASON_PREFIX} {text}"


def _compute_tag(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:4]
