"""`python -m assay.node.probe.pack OUT`: writes the probe as one file; `python3 -I OUT` runs it on a node.

The file is a zip of the modules that the probe imports, and nothing else of assay; what they need of NVML's bindings is
in it with `--with-nvml`. With `--load-tool`, the file is `assay-load` instead: `PYTHON OUT` runs it, and PYTHON has
numpy or JAX. The same sources give the same bytes. The node needs Python 3.10 or newer (`make lint` checks that).

NVML's bindings are cut down to a tenth, as is the time to compile them on a node: a statement is kept where our
sources, or a kept statement, name what it binds, in code or as a string. So our sources write these names in full.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.util
import io
import marshal
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from assay.model.gc_pause import pause_gc

ALWAYS_KEPT = "NVML_ERROR_"  # the bindings look these up by their prefix, to make a class of each
_WORD = re.compile(r"\w+")
COMPILE_ONCE = """\
import os, sys, zipimport
class Importer(zipimport.zipimporter):
    def get_filename(self, name):
        end = "/__init__.py" if self.is_package(name) else ".py"
        return os.path.join(self.archive, self.prefix + name.rpartition(".")[2] + end)
sys.path_hooks.insert(0, Importer)
"""
"""Halves what the imports cost a node: zipimport compiles a module to tell its file name, and again to run it."""
ENTRY = "assay.node.probe.__main__"
LOAD_ENTRY = "assay.node.load.__main__"
BINDINGS = "pynvml"
OLDEST_PYTHON = (3, 10)
SHEBANG = b"#!/usr/bin/env python3\n"
START = f"""import sys
if sys.version_info < {OLDEST_PYTHON}:
    sys.exit("the probe needs Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer; this is " + sys.version.split()[0])
{COMPILE_ONCE}sys.path_importer_cache.pop(sys.path[0], None)
from {{entry}} import main
main()
"""
CODE_HEADER = importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + bytes(8)
"""That of a .pyc file which nobody compares with its source."""
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


def main() -> None:
    """Write the file, whole or not at all, and print its size."""
    parser = argparse.ArgumentParser("python -m assay.node.probe.pack", description="Write the probe as one file.")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--with-nvml", action="store_true", help="for nodes that have no nvidia-ml-py")
    parser.add_argument("--load-tool", action="store_true", help="pack assay-load instead of the probe")
    arguments = parser.parse_args()
    content = build_pack(LOAD_ENTRY if arguments.load_tool else ENTRY, with_nvml=arguments.with_nvml)
    scratch = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    scratch.write_bytes(content)
    scratch.chmod(0o755)
    scratch.replace(arguments.out)
    print(f"{arguments.out}: {len(content)} bytes")  # noqa: T201 — the answer


@functools.cache
def build_pack(entry: str = ENTRY, *, with_nvml: bool = False, with_code: bool = False) -> bytes:
    """Return an executable zip whose `__main__.py` calls `main` of the module `entry`.

    With code, what every start imports is in it compiled, too: a Python of the same version as this one needs half the
    time to start it. zipimport passes over what another version has compiled.
    """
    modules = find_needed_modules(entry)
    if with_nvml:
        whole = _source(BINDINGS).read_text(encoding="utf-8")
        modules[BINDINGS] = ".py", prune_bindings(whole, (source for _, source in modules.values())).encode()
    files = {f"{name.replace('.', '/')}{end}": source for name, (end, source) in modules.items()}
    started = {*find_needed_modules(entry, at_start=True), BINDINGS} if with_code else ()
    for path in [f"{name.replace('.', '/')}{end}" for name, (end, _) in modules.items() if name in started]:
        with suppress(ValueError):  # marshal's oldest format, which depends on nothing but the code, may lack a type
            files[f"{path}c"] = CODE_HEADER + marshal.dumps(compile(files[path], path, "exec", dont_inherit=True), 2)
    files["__main__.py"] = START.format(entry=entry).encode()
    out = io.BytesIO(SHEBANG)
    out.seek(0, io.SEEK_END)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, source in sorted(files.items()):
            archive.writestr(_zip_entry(name), source)
    return out.getvalue()


def find_needed_modules(entry: str, *, at_start: bool = False) -> dict[str, tuple[str, bytes]]:
    """Return every module of assay that `entry` imports, directly or not: name → (end of its path, source).

    `at_start`: only those that are imported before a function is called.
    """
    modules: dict[str, tuple[str, bytes]] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name in modules or not name:
            continue
        path = _source(name)
        source = path.read_bytes()
        modules[name] = ("/__init__.py" if path.name == "__init__.py" else ".py", source)
        waiting += [name.rpartition(".")[0], *_imports(source, at_start=at_start)]
    return modules


def _imports(source: bytes, *, at_start: bool) -> Iterator[str]:
    """Yield the modules of assay that a source imports at any place in it, or as statements of the module."""
    statements = parse_source(source)
    for node in statements if at_start else (inner for statement in statements for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("assay."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "assay":
            yield str(node.module)
            yield from filter(_is_module, (f"{node.module}.{alias.name}" for alias in node.names))


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _source(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name)
    return Path(spec.origin)


def _zip_entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.create_system = 3  # Unix, wherever this runs
    return entry


def parse_source(source: str | bytes) -> list[ast.stmt]:
    """Return the statements of a module.

    CPython 3.11 counts the depth of all trees in one place: SystemError, if another thread parses in the meantime. Only
    the collection of garbage lets one in.
    """
    with pause_gc():
        return ast.parse(source).body


def prune_bindings(source: str, users: Iterable[bytes]) -> str:
    """Return the statements of the module `source` that the sources `users` need, in their order."""
    lines = source.splitlines(keepends=True)
    statements = parse_source(source)
    binders: dict[str, list[int]] = {}
    for place, statement in enumerate(statements):
        for name in _bound_names(statement) or ():
            binders.setdefault(name, []).append(place)
    named = {word for user in users for word in _WORD.findall(user.decode())}
    waiting = [place for name in binders if name in named or name.startswith(ALWAYS_KEPT) for place in binders[name]]
    waiting += [place for place, statement in enumerate(statements) if _bound_names(statement) is None]
    kept = _follow_names(waiting, statements, binders)
    text = []
    for statement in (statements[place] for place in sorted(kept)):
        decorators = [decorator.lineno for decorator in getattr(statement, "decorator_list", ())]
        text += lines[min([statement.lineno, *decorators]) - 1 : statement.end_lineno]
    return "".join(text)


def _follow_names(waiting: list[int], statements: list[ast.stmt], binders: Mapping[str, list[int]]) -> set[int]:
    """Return the places of these statements and of all that they need, directly or not."""
    kept = set[int]()
    while waiting:
        place = waiting.pop()
        if place not in kept:
            kept.add(place)
            waiting += [binder for name in _used_names(statements[place]) for binder in binders.get(name, ())]
    return kept


def _bound_names(statement: ast.stmt) -> list[str] | None:
    """Return what a statement of the module binds; None where it must stay whatever it binds, as an `import *`."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        names = [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
        return None if "*" in names else names
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return None


def _used_names(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


if __name__ == "__main__":
    main()
