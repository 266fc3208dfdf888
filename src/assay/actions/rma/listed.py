"""Who put which photo into a dossier, and when: lines of the ledger, which hold each photo by its sha256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from assay.actions.rma.content import Plain
from assay.model.entry import Entry, derived_id

KIND = "photos.taken"


def listed(files: Mapping[str, bytes], entries: Iterable[Entry], effect: str) -> list[Plain]:
    """Return the photos of a dossier in the order of names: `file`, `sha256`, `bytes`, and `who` added it, `at` when.

    `files` are those in its folder. Of one that nobody has spoken for yet, `who` and `at` are "".
    """
    spoken = {
        (photo["file"], photo["sha256"]): {"who": entry.body["who"], "at": entry.at}
        for entry in reversed(list(entries))
        if entry.kind == KIND and entry.body["effect"] == effect
        for photo in entry.body["photos"]
    }
    return [{**one, **spoken.get((one["file"], one["sha256"]), {"who": "", "at": ""})} for one in _plain(files)]


def added(node: str, effect: str, photos: Iterable[Plain], who: str, at: str) -> Iterator[Entry]:
    """Yield the line by which somebody adds the photos that nobody has spoken for yet; none where there are none."""
    names = ("file", "sha256", "bytes")
    new = [{name: one[name] for name in names} for one in photos if not one["who"]]
    if new:
        ident = derived_id(KIND, effect, *(f"{one['file']}/{one['sha256']}" for one in new))
        yield Entry(ident, at, KIND, node, {"effect": effect, "who": who, "photos": new})


def _plain(files: Mapping[str, bytes]) -> Iterator[Plain]:
    for name, content in files.items():
        yield {"file": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
