"""Facts: one frozen shape for what assay knows, which is also what it stores in the ledger and what it answers.

A class with `@fact` is a dataclass. The text of the class, and the text below each field, are also what the JSON Schema
of an answer says of it. A field has the name that JSON has; what a field needs beyond that, `shown`, `internal` and
`inline` say. Nothing here needs pydantic, which takes long to import.

A command makes hundreds of classes before its first line. `dataclass(frozen=True)` compiles six methods for each, which
was a third of the time in which `assay status` starts; `@frozen` compiles one, and shares the others.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from assay.model.timestamps import format_time

T = TypeVar("T")
MARK = "fact"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class what `dataclass(frozen=True, slots=True)` makes it, in a third of the time."""
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    compared = [each.name for each in fields(made) if each.compare]  # type: ignore[arg-type]
    read: Callable[[Any], Any] = attrgetter(*compared) if compared else type

    def is_equal(self: Any, other: Any) -> bool:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_fields(self: Any) -> int:
        return hash(read(self))

    methods = {"__init__": _make_init(made), "__eq__": is_equal, "__hash__": hash_fields, **_SHARED}
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:
            setattr(made, name, method)
    return made


def _make_init(kind: type) -> Callable[..., None]:
    """Return the `__init__` of a frozen class. It sets slots by their descriptors, since assignments are refused."""
    names: dict[str, Any] = {"MISSING": MISSING}
    in_order, by_name, body = ["self"], ["*"], [" pass"]
    for each in (each for each in fields(kind) if each.init):  # `__post_init__` sets the others
        name = parameter = value = each.name
        if each.default is not MISSING:
            parameter = f"{name}=default_{name}"
        elif each.default_factory is not MISSING:
            parameter, value = f"{name}=MISSING", f"default_{name}() if {name} is MISSING else {name}"
        default = each.default_factory if each.default is MISSING else each.default
        names |= {f"put_{name}": getattr(kind, name).__set__, f"default_{name}": default}
        body.append(f" put_{name}(self, {value})")
        (by_name if each.kw_only else in_order).append(parameter)
    if hasattr(kind, "__post_init__"):
        body.append(" self.__post_init__()")
    parameters = [*in_order, *by_name] if by_name[1:] else in_order
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body), names)  # noqa: S102 (as dataclasses does it)
    init: Callable[..., None] = names["__init__"]
    return init


class _Shared:
    """The methods that all frozen classes share."""

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot set {name!r} of a {type(self).__qualname__} to {value!r}: it is frozen")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete {name!r} of a {type(self).__qualname__}: it is frozen")

    def __getstate__(self) -> list[Any]:
        return [getattr(self, each.name) for each in fields(self)]  # type: ignore[arg-type]

    def __setstate__(self, state: list[Any]) -> None:
        for each, value in zip(fields(self), state, strict=True):  # type: ignore[arg-type]
            object.__setattr__(self, each.name, value)


_SHARED = {name: method for name, method in vars(_Shared).items() if callable(method)}


class FieldMark(NamedTuple):
    """How JSON has a field: under which `key` ("": its own name), and what is read where an old body lacks the key.

    `omit`: JSON has no key where the value is the default. `omit_stored`: only the ledger has none. `is_internal`: no
    JSON has the field. `is_inline`: the fields of the fact that it holds stand in its place.
    """

    key: str = ""
    missing: Any = MISSING
    omit: bool = False
    omit_stored: bool = False
    is_internal: bool = False
    is_inline: bool = False


def shown(
    key: str = "",
    *,
    missing: Any = MISSING,
    omit: bool = False,
    omit_stored: bool = False,
    default: Any = MISSING,
    default_factory: Any = MISSING,
) -> Any:
    """Return a field that JSON has in another form, see `FieldMark`. Use `key` only for Python's own words, as `from`.

    What the ledger stores is hashed, so its form never changes.
    """
    mark = FieldMark(key, missing, omit, omit_stored)
    return field(default=default, default_factory=default_factory, metadata={MARK: mark})


def internal(*, default: Any = MISSING, default_factory: Any = MISSING) -> Any:
    """Return a field that no JSON has."""
    return field(default=default, default_factory=default_factory, metadata={MARK: FieldMark(is_internal=True)})


def inline() -> Any:
    """Return a field with a fact whose fields stand in its place."""
    return field(metadata={MARK: FieldMark(is_inline=True)})


@dataclass_transform(frozen_default=True, field_specifiers=(shown, internal, inline, field))
def fact(cls: type[T]) -> type[T]:
    """Make a class a fact: a frozen class that JSON has."""
    return frozen(cls)


def extend(kind: type[T], base: Any, **more: Any) -> T:
    """Return a fact with what `base` has, as a field or a property, and more."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: more[name] if name in more else getattr(base, name) for name in names})


def find_mark(each: Any) -> FieldMark:
    """Return how JSON has a field of a dataclass."""
    mark: FieldMark = each.metadata.get(MARK, FieldMark())
    return mark._replace(key=mark.key or each.name)


def to_json(value: Any) -> Any:
    """Return a value as plain JSON data. Raises TypeError for what JSON has not."""
    return _encode(value, is_stored=False)


def to_stored(value: Any) -> Any:
    """Return a value as the ledger stores it: fields that say so are left out where they have their default."""
    return _encode(value, is_stored=True)


def format_compact(value: Any) -> str:
    """Return a value as JSON text without spaces, for requests of programs."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _encode(value: Any, *, is_stored: bool) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [_encode(item, is_stored=is_stored) for item in value]
    if kind is dict:
        return {name: _encode(item, is_stored=is_stored) for name, item in value.items()}
    if not is_dataclass(kind):
        return _encode_other(value, is_stored=is_stored)
    plain: dict[str, Any] = {}
    for name, mark, default in _list_shown(kind):
        item = getattr(value, name)
        if (mark.omit or (is_stored and mark.omit_stored)) and item == default:
            continue
        if mark.is_inline:
            plain.update(_encode(item, is_stored=is_stored))
        else:
            plain[mark.key] = item if type(item) in _PLAIN else _encode(item, is_stored=is_stored)
    return plain


def _encode_other(value: Any, *, is_stored: bool) -> Any:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return {name: _encode(item, is_stored=is_stored) for name, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset) and not hasattr(value, "_fields"):
        return [_encode(item, is_stored=is_stored) for item in value]
    raise TypeError(f"{type(value).__name__} is no fact and nothing that JSON has")


@cache
def _list_shown(kind: type) -> tuple[tuple[str, FieldMark, Any], ...]:
    """Return the name, the mark and the default of each field that JSON has."""
    marked = [(each.name, find_mark(each), find_default(each)) for each in fields(kind)]
    return tuple(field for field in marked if not field[1].is_internal)


def find_default(each: Any) -> Any:
    """Return the default of a field, MISSING for none."""
    return each.default_factory() if each.default_factory is not MISSING else each.default


def from_json(kind: type[T], plain: Mapping[str, Any]) -> T:
    """Return the fact that `to_json` or `to_stored` gave. Raises KeyError where a key is not there that must be.

    It sets the slots directly, which skips `__init__`: a start reads the whole history.
    """
    simple, others = _READERS.get(kind) or _list_readers(kind)
    made = object.__new__(kind)
    try:
        for put, key in simple:
            put(made, plain[key])
    except KeyError:
        return _read_incomplete(kind, plain)
    for put, key, parse, missing in others:
        value = plain[key] if missing is MISSING else plain.get(key, missing)
        put(made, parse(value) if parse and value is not None else value)
    return made


def _read_incomplete(kind: type[T], plain: Mapping[str, Any]) -> T:
    """Return the fact of data that lacks keys which have a default."""
    keys = [(find_mark(each).key, find_default(each)) for each in fields(kind)]  # type: ignore[arg-type]
    defaults = {key: default for key, default in keys if default is not MISSING}
    if absent := [key for _, key in _READERS[kind][0] if key not in plain and key not in defaults]:
        raise KeyError(absent[0])
    return from_json(kind, {**defaults, **plain})


def set_fields(made: Any, names: Iterable[str], values: Iterable[Any]) -> None:
    """Set fields of a fact, also of one that is made without them, to what the values in JSON stand for."""
    kind: type = type(made)
    readers = _list_field_readers(kind)
    for name, value in zip(names, values, strict=True):
        put, parse = readers[name]
        put(made, parse(value) if parse and value is not None else value)


Put = Callable[[Any, Any], None]
Parse = Callable[[Any], Any]
FieldReaders = tuple[tuple[tuple[Put, str], ...], tuple[tuple[Put, str, Parse | None, Any], ...]]


_READERS: dict[type, FieldReaders] = {}


def _list_readers(kind: type) -> FieldReaders:
    """Return what sets the fields that are taken as they are, and those that are parsed or may be missing."""
    simple: list[tuple[Put, str]] = []
    others: list[tuple[Put, str, Parse | None, Any]] = []
    setters = _list_field_readers(kind)
    for name, mark, default in _list_shown(kind):
        put, parse = setters[name]
        missing = default if mark.missing is MISSING else mark.missing
        if parse or mark.omit or mark.omit_stored or mark.missing is not MISSING:
            others.append((put, mark.key, parse, missing))
        else:
            simple.append((put, mark.key))
    _READERS[kind] = (tuple(simple), tuple(others))
    return _READERS[kind]


@cache
def _list_field_readers(kind: type) -> dict[str, tuple[Put, Parse | None]]:
    """Return what sets and parses each field that JSON has, by its name."""
    hints = read_hints(kind)
    return {name: (getattr(kind, name).__set__, _find_parser(hints[name])) for name, _, _ in _list_shown(kind)}


def _find_parser(hint: Any) -> Parse | None:
    """Return what turns JSON data into a value of a type, None where it is one already."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(from_json, hint)
    if origin is Annotated:
        return _find_parser(parts[0])
    if origin in (Union, UnionType):
        return next(filter(None, map(_find_parser, parts)), None)
    item = _find_parser(parts[-2] if origin is tuple and parts[-1] is ... else parts[-1]) if parts else None
    if origin is frozenset:
        return frozenset
    if origin is tuple:
        return (lambda values: tuple([item(value) for value in values])) if item else tuple
    if origin is list and item:
        return lambda values: [item(value) for value in values]
    if item and isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda values: {name: item(value) for name, value in values.items()}
    return None


@cache
def read_hints(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields, also where its module imports them for type checkers only."""
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError:
        for base in {kind, *kind.__mro__, *getattr(kind, "__orig_bases__", ())}:
            load_type_imports(getattr(base, "__module__", ""))
        return get_type_hints(kind, include_extras=True)


@cache
def load_type_imports(name: str) -> None:
    """Give a module the names that it imports for type checkers only."""
    if not name.startswith("assay."):
        return
    module = sys.modules[name]
    imports: list[ast.ImportFrom] = []
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            imports += [statement for statement in node.body if isinstance(statement, ast.ImportFrom)]
    for statement in imports:
        imported = __import__(statement.module or "", fromlist=[alias.name for alias in statement.names])
        for alias in statement.names:
            setattr(module, alias.asname or alias.name, getattr(imported, alias.name))
