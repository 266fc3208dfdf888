"""What the content of every ledger entry shares: stored JSON to typed fields and back, and old versions on reading.

A content class declares `kind`, `version` and its fields. `stored_as` says how a field is stored where the plain
value under the field's own name is not enough. The stored JSON is hashed, so a field's stored form never changes:
raise `version` and add an upcaster instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, NamedTuple, Self

from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry

EntryBody = Mapping[str, Any]
Upcaster = Callable[[EntryBody], EntryBody]
VERSION_KEY = "entry_version"
"""Names the version of a stored body. Version 1 is not written: a body without this key is of version 1."""


class EntryContent:
    """Base of the content of one entry kind. Subclasses are frozen dataclasses with slots.

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
        return cls._parse_body(body)

    def to_body(self) -> dict[str, Any]:
        """Return the body that is stored: plain JSON data of this class's version."""
        return self._encode_body() if self.version == 1 else {VERSION_KEY: self.version, **self._encode_body()}

    def make_entry(self, ident: str, at: str, node: str = "") -> LedgerEntry:
        """Return the entry to append: `at` is ISO 8601 UTC, `node` is "" for an entry about no single node."""
        return LedgerEntry(ident, at, self.kind, node, self.to_body())

    @classmethod
    def _parse_body(cls, body: EntryBody) -> Self:
        """Return the content of a body of this class's version."""
        content = object.__new__(cls)
        plain, others = _list_readers(cls)
        try:
            for put, key in plain:
                put(content, body[key])
            for put, key, parse, missing in others:
                value = body[key] if missing is MISSING else body.get(key, missing)
                put(content, parse(value) if parse else value)
        except KeyError:
            return cls._parse_incomplete_body(body)
        return content

    @classmethod
    def _parse_incomplete_body(cls, body: EntryBody) -> Self:
        """Return the content of a body that lacks keys, which older entries do."""
        content = object.__new__(cls)
        for name, stored in _list_stored_fields(cls):
            value = body.get(stored.key, stored.missing)
            if value is MISSING:
                what = f"an entry of kind {cls.kind} has no {stored.key!r}"
                raise AssayError(what, fix="find out whether it was changed: `assay ledger verify`")
            object.__setattr__(content, name, stored.parse(value) if stored.parse else value)
        return content

    def _encode_body(self) -> dict[str, Any]:
        """Return the body without its version."""
        body: dict[str, Any] = {}
        for name, stored in _list_stored_fields(type(self)):
            value = getattr(self, name)
            if not stored.omit_empty or value:
                body[stored.key] = stored.encode(value) if stored.encode else value
        return body


class StoredField(NamedTuple):
    """How a field is stored: under which `key`, and as which value.

    `missing` is read where the key is not there. `omit_empty` leaves the key out where the value is empty. `parse` and
    `encode` convert from and to the JSON value.
    """

    key: str = ""
    missing: Any = MISSING
    omit_empty: bool = False
    parse: Callable[[Any], Any] | None = None
    encode: Callable[[Any], Any] | None = None


def stored_as(
    key: str = "",
    *,
    missing: Any = MISSING,
    omit_empty: bool = False,
    parse: Callable[[Any], Any] | None = None,
    encode: Callable[[Any], Any] | None = None,
) -> dict[str, StoredField]:
    """Return the metadata of a dataclass field that is stored in another form, see `StoredField`."""
    return {"stored": StoredField(key, missing, omit_empty, parse, encode)}


def stored_list(key: str = "", *, missing: Any = MISSING) -> dict[str, StoredField]:
    """Return the metadata of a tuple that is stored as a JSON list."""
    return stored_as(key, missing=missing, parse=tuple, encode=list)


def upcast_body(cls: type[EntryContent], body: EntryBody) -> EntryBody:
    """Return the body as the version of `cls` has it. Raises AssayError for one of a newer version."""
    found = body.get(VERSION_KEY, 1)
    if found not in range(1, cls.version + 1):
        what = f"an entry of kind {cls.kind} has version {found}, and this assay reads versions up to {cls.version}"
        raise AssayError(what, fix="use the newer assay that wrote it")
    for version in range(found, cls.version):
        body = cls.upcasters[version](body)
    return body


def _list_stored_fields(cls: type[EntryContent]) -> tuple[tuple[str, StoredField], ...]:
    """Return the name of each field of a content class with how it is stored."""
    if cls in _stored_fields:
        return _stored_fields[cls]
    found = []
    for field in fields(cls):  # type: ignore[arg-type]  # each subclass is a dataclass
        stored: StoredField = field.metadata.get("stored", StoredField())
        missing = _find_default(field) if stored.missing is MISSING else stored.missing
        found.append((field.name, stored._replace(key=stored.key or field.name, missing=missing)))
    _stored_fields[cls] = tuple(found)
    return _stored_fields[cls]


def _find_default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


FieldSetter = Callable[[Any, Any], None]
PlainReader = tuple[FieldSetter, str]
OtherReader = tuple[FieldSetter, str, Callable[[Any], Any] | None, Any]


FieldReaders = tuple[tuple[PlainReader, ...], tuple[OtherReader, ...]]


def _list_readers(cls: type[EntryContent]) -> FieldReaders:
    """Return what reads a complete body: the fields that are taken as they are, and those that are parsed or optional.

    Setting slots directly skips the slow `__init__` of a frozen dataclass: a start reads the whole history.
    """
    if cls in _readers:
        return _readers[cls]
    plain: list[PlainReader] = []
    others: list[OtherReader] = []
    for name, stored in _list_stored_fields(cls):
        put = getattr(cls, name).__set__
        if stored.parse or stored.omit_empty:
            others.append((put, stored.key, stored.parse, stored.missing))
        else:
            plain.append((put, stored.key))
    _readers[cls] = (tuple(plain), tuple(others))
    return _readers[cls]


_stored_fields: dict[type[EntryContent], tuple[tuple[str, StoredField], ...]] = {}
_readers: dict[type[EntryContent], FieldReaders] = {}
