"""The anchor of a name as people write it: `file:PATH`, `git-note[:REF]`, `rfc3161:URL[#CA]`."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from assay.ledger.copies.anchor import Anchor, AnchoredFleet, make_no_seal_error
from assay.ledger.copies.git_note import DEFAULT_REF, GitNoteAnchor
from assay.ledger.copies.seal_file import FileAnchor
from assay.ledger.copies.time_stamp import TimeStampAnchor
from assay.model.errors import AssayError

ANCHOR_FIX = "write file:PATH, git-note, git-note:REF, or rfc3161:URL#ROOTS.pem"
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)*")


def parse_anchor(name: str, fleet: AnchoredFleet) -> Anchor:
    """Return the anchor that a name means; paths are below the fleet's folder. Raises AssayError."""
    kind, _, rest = name.partition(":")
    if kind == "file" and rest:
        return _make_file_anchor(name, fleet, fleet.root / rest)
    if kind == "git-note" and _REF.fullmatch(rest or DEFAULT_REF) and ".." not in rest:
        return GitNoteAnchor(name, fleet.root, rest or DEFAULT_REF, fleet.register)
    if kind == "ledger" and rest:
        raise make_no_seal_error(name, "another ledger is no anchor any more", fleet.register)
    if kind == "rfc3161" and rest.startswith(("http://", "https://")):
        url, _, roots = rest.partition("#")
        if "@" in urlsplit(url).netloc:
            raise AssayError("an anchor holds no password", where="rfc3161", fix="name an authority that asks for none")
        return TimeStampAnchor(name, url, fleet.root / roots if roots else None, fleet.register)
    raise AssayError(f"{name!r} is not an anchor", fix=ANCHOR_FIX)


def _make_file_anchor(name: str, fleet: AnchoredFleet, path: Path) -> Anchor:
    own = {fleet.register.absolute(), Path(str(fleet.ledger)).absolute()}
    if path.absolute() in own or path.is_dir():
        raise AssayError("an anchor is a file of its own", where=name, fix="name another file, best on another machine")
    return FileAnchor(name, path, fleet.register)
