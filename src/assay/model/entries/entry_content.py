"""What the content of every ledger entry shares: stored JSON to typed fields and back, and old versions on reading.

A content class is a fact that declares `kind`, `version` and its fields. The stored JSON is hashed, so a field's stored
form never changes: raise `version` and add an upcaster instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from assay.model.errors import AssayError
from assay.model.facts import from_json, to_stored
from assay.model.ledger_entry import LedgerEntry

EntryBody = Mapping[str, Any]
Upcaster = Callable[[EntryBody], EntryBody]
VERSION_KEY = "entry_version"
"""Names the version of a stored body. Version 1 is not written: a body without this key is of version 1."""


class EntryContent:
    """Base of the content of one entry kind. Subclasses are facts.

    `upcasters` turns a body of the version that is its key into one of the next version. It runs on reading only.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1
    upcasters: ClassVar[Mapping[int, Upcaster]] = {}

    @classmethod
    def read(cls, entry: LedgerEntry) -> Self:
        """Return the content of a stored entry of this kind. Raises AssayError, see `from_body`."""
        try:
            return cls.from_body(entry.body)
        except AssayError as error:
            raise AssayError(error.what, where=f"ledger entry {entry.seq or entry.id}", fix=error.fix) from None

    @classmethod
    def from_body(cls, body: EntryBody) -> Self:
        """Return the content of a stored body, of this version or an older one. Keys that are not known are ignored.

        Raises AssayError for a body of a newer version, and for one that lacks a field.
        """
        if cls.version != 1 or VERSION_KEY in body:
            body = upcast_body(cls, body)
        try:
            return cls._parse_body(body)
        except KeyError as error:
            message = f"an entry of kind {cls.kind} has no {error.args[0]!r}"
            raise AssayError(message, fix="find out whether it was changed: `assay ledger verify`") from None

    def to_body(self) -> dict[str, Any]:
        """Return the body that is stored: plain JSON data of this class's version."""
        return self._encode_body() if self.version == 1 else {VERSION_KEY: self.version, **self._encode_body()}

    def make_entry(self, ident: str, at: str, node: str = "") -> LedgerEntry:
        """Return the entry to append: `at` is ISO 8601 UTC, `node` is "" for an entry about no single node."""
        return LedgerEntry(ident, at, self.kind, node, self.to_body())

    @classmethod
    def _parse_body(cls, body: EntryBody) -> Self:
        """Return the content of a body of this class's version. Raises KeyError for a key that is not there."""
        return from_json(cls, body)

    def _encode_body(self) -> dict[str, Any]:
        """Return the body without its version."""
        body: dict[str, Any] = to_stored(self)
        return body


def upcast_body(cls: type[EntryContent], body: EntryBody) -> EntryBody:
    """Return the body as the version of `cls` has it. Raises AssayError for one of a newer version."""
    stored = body.get(VERSION_KEY, 1)
    if stored not in range(1, cls.version + 1):
        message = f"an entry of kind {cls.kind} has version {stored}, and this assay reads versions up to {cls.version}"
        raise AssayError(message, fix="use the newer assay that wrote it")
    for version in range(stored, cls.version):
        body = cls.upcasters[version](body)
    return body
