"""The reasons that assay writes on the nodes that it cordons, and how it recognises them. Standard library only.

Every reason of ours starts with `assay:`. Slurm keeps one reason per node, and whoever drains or edits the node
replaces it. So in Slurm a reason also ends with a tag, a digest of its words:
`assay: gpu.missing on h100-a/n0007/gpu3 #3f2a`. If words and tag do not fit, somebody changed the reason, and the
cordon is no longer ours to undo. The Slurm hook on the nodes writes such reasons too.
"""

from __future__ import annotations

import hashlib

REASON_PREFIX = "assay:"
MAX_REASON_LENGTH = 400


def is_our_reason(reason: str) -> bool:
    """Say whether a reason starts with our prefix."""
    return reason.startswith(REASON_PREFIX)


def prefix_reason(text: str) -> str:
    """Return `text` with our prefix in front, once."""
    return text if is_our_reason(text) else f"{REASON_PREFIX} {text}"


def tag_reason(text: str) -> str:
    """Return our reason for Slurm: with prefix and tag, on one line, without characters that scontrol interprets."""
    plain = "".join(letter if letter.isprintable() else " " for letter in prefix_reason(text).replace('"', "'"))
    words = " ".join(plain.replace("\\", "/").split())[:MAX_REASON_LENGTH].rstrip()
    return f"{words} #{_compute_tag(words)}"


def display_reason(reason: str, who: str = "") -> str:
    """Return a reason from Slurm as people see it: ours without its tag, anybody else's unchanged.

    A reason with our prefix and a wrong tag reads as changed by `who`, the user who set it last.
    """
    words, _, tag = reason.rpartition(" #")
    if is_our_reason(words) and tag == _compute_tag(words):
        return words
    return f"set or changed by {who or 'somebody'}: {reason}" if is_our_reason(reason) else reason


def is_untampered(reason: str) -> bool:
    """Say whether a reason in Slurm is ours and unchanged."""
    return is_our_reason(display_reason(reason))


def _compute_tag(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:4]
