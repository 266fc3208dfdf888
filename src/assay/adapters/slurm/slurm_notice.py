"""Shows notices in Slurm: in the node's comment while it is out of service. A comment of somebody else stays.

With `slurm_cordon: reservation`, the comment has the reason of our reservation, and the notice is in `extra`. A notice
has our prefix, its own words and our tag (model/cordon_ownership.py): whoever edits it owns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from assay.adapters.node_notice import NodeNotice
from assay.adapters.slurm.slurm_json import SlurmNode
from assay.model.cordon_ownership import REASON_PREFIX, is_untampered, tag_reason

NOTICE_PREFIX = f"{REASON_PREFIX} for customers: "
NoticeField = Literal["comment", "extra"]


def is_our_notice(text: str) -> bool:
    """Say whether a comment is a notice of ours that nobody has changed."""
    return text.startswith(NOTICE_PREFIX) and is_untampered(text)


def make_notice_orders(
    nodes: Mapping[str, SlurmNode], notices: Mapping[str, NodeNotice], field: NoticeField
) -> Iterator[str]:
    """Yield the orders for scontrol: a node out of service gets its notice, one in service loses it."""
    for name, notice in notices.items():
        present = _read_field(nodes[name], field) if name in nodes else None
        wanted = _format_notice(notice)
        if present is not None and present != wanted and (not present or is_our_notice(present)):
            yield f'update nodename={name} {field}="{wanted}"' if wanted else f"update nodename={name} {field}="


def find_missing_notices(
    nodes: Mapping[str, SlurmNode], notices: Mapping[str, NodeNotice], field: NoticeField
) -> dict[str, str]:
    """Return why a notice is not shown, by node. `nodes` are the nodes as they were just read."""
    found = {name: _find_lack(nodes.get(name), notice, field) for name, notice in notices.items()}
    return {name: why for name, why in found.items() if why}


def _find_lack(node: SlurmNode | None, notice: NodeNotice, field: NoticeField) -> str:
    if node is None:
        return "Slurm does not know this node"
    present, wanted = _read_field(node, field), _format_notice(notice)
    if present == wanted or (not wanted and not is_our_notice(present)):
        return ""
    if is_our_notice(present):
        return f"the node's {field} still has an earlier notice"
    return f"the node's {field} is used by somebody else" if present else f"the node's {field} is empty"


def _format_notice(notice: NodeNotice) -> str:
    """Return the text on the node, "" for a node in service: there is nothing to tell on it."""
    return "" if notice.in_service else tag_reason(f"{NOTICE_PREFIX}{notice.text}")


def _read_field(node: SlurmNode, field: NoticeField) -> str:
    return node.comment if field == "comment" else node.extra
