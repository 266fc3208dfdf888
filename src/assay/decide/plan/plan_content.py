"""What a plan decides, as plain data with a digest: the nodes, what happens to each of them, the waves, the risks.

File lines are left out, because they move when somebody edits the file above them. So are names of revisions.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from assay.model.errors import AssayError

DIGEST_PREFIX = "sha256:"
PLAN_TRAILER = "Assay-Plan"
"""The trailer of a commit, and the line of a comment or a git note, that carries a digest."""
CONTENT_VERSION = 1


@dataclass(frozen=True)
class PlanContent:
    """What happens to each node that the merge touches, in lines; the names of each wave, in order.

    `changes` are those that belong to no single node, such as a setting of the policy. `risks` are in words.
    """

    nodes: Mapping[str, tuple[str, ...]]
    waves: tuple[tuple[str, ...], ...] = ()
    changes: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """`sha256:` and the hash of the canonical JSON."""
        plain = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return DIGEST_PREFIX + sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, the same whatever the order of nodes and changes."""
        alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in sorted(self.nodes):
            alike[tuple(sorted(set(self.nodes[name])))].append(name)
        return {
            "version": CONTENT_VERSION,
            "nodes": [{"nodes": names, "what": list(what)} for what, names in alike.items()],
            "waves": [sorted(wave) for wave in self.waves],
            "changes": sorted(set(self.changes)),
            "risks": sorted(set(self.risks)),
        }


NO_CONTENT = PlanContent({})


def parse_plan_content(plain: Any) -> PlanContent:
    """Return the content of JSON data. Raises AssayError if it is none, or of another version."""
    try:
        if plain["version"] != CONTENT_VERSION:
            raise AssayError(f"the plan was stored by another version of assay ({plain['version']})")
        nodes = {str(name): tuple(map(str, one["what"])) for one in plain["nodes"] for name in one["nodes"]}
        waves = tuple(tuple(map(str, wave)) for wave in plain["waves"])
        return PlanContent(nodes, waves, _read_words(plain["changes"]), _read_words(plain["risks"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AssayError(f"the stored plan cannot be read: {error!r}") from None


def _read_words(words: Iterable[object]) -> tuple[str, ...]:
    return tuple(map(str, words))
