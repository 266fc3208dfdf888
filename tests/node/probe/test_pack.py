"""The probe as one file: small, always the same bytes, and sufficient on a machine that has nothing else."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pynvml
import pytest

from assay.node.probe.pack import COMPILE_ONCE, START, build_pack, find_needed_modules, prune_bindings

ALLOWED_BYTES = 200_000


def pack(out: Path, *options: str, mask: int = 0o022) -> Path:
    command = [sys.executable, "-m", "assay.node.probe.pack", str(out), *options]
    subprocess.run(command, check=True, umask=mask, stdout=subprocess.DEVNULL)
    return out


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("pack") / "probe.pyz")


def test_it_is_smaller_than_what_was_promised(probe: Path) -> None:
    assert probe.stat().st_size < ALLOWED_BYTES
    assert "pynvml.py" not in zipfile.ZipFile(probe).namelist()


def test_two_runs_make_the_same_bytes(probe: Path, tmp_path: Path) -> None:
    again = pack(tmp_path / "again", mask=0o077)
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(probe.read_bytes()).digest()


def test_it_holds_what_the_probe_imports_and_no_more_of_assay(probe: Path) -> None:
    names = zipfile.ZipFile(probe).namelist()
    rooms = {name.split("/")[1] for name in names if name.startswith("assay/") and name.count("/") > 1}
    assert rooms == {"node", "model"}
    assert [name for name in names if name.startswith("assay/model/")] == [
        "assay/model/__init__.py",
        "assay/model/reading.py",
        "assay/model/specs/__init__.py",
        "assay/model/specs/load_parts.py",
    ]
    assert "assay/node/probe/pack.py" not in names


@pytest.mark.parametrize("how", [["python3", "-I"], ["python3", "-I", "-S"], []])
def test_it_runs_where_nothing_is_installed_and_the_environment_is_empty(
    probe: Path, tmp_path: Path, how: list[str]
) -> None:
    alone = shutil.copy2(probe, tmp_path / "probe.pyz")
    done = subprocess.run([*how, alone], capture_output=True, env={"PATH": os.defpath}, cwd="/", check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    host = json.loads(done.stdout)["probe"]["host"]
    assert host["boot_id"] == {"value": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}


def test_a_python_too_old_is_told_so_and_nothing_is_run() -> None:
    with_newer = START.format(entry="assay.node.probe.__main__").replace("(3, 10)", "(9, 9)")
    done = subprocess.run([sys.executable, "-c", with_newer], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("the probe needs Python 3.10 or newer; this is 3.")


def names_of_bindings(within: Path | None = None) -> tuple[set[str], str]:
    """Return what the bindings define, installed or in an archive, and the path of their file."""
    show = "import pynvml; print(*sorted(set(dir(pynvml)) - set(dir(__builtins__))), pynvml.__file__)"
    options, there = ([], None) if within is None else (["-S"], {"PYTHONPATH": str(within)})
    done = subprocess.run([sys.executable, *options, "-c", show], capture_output=True, text=True, check=True, env=there)
    *names, where = done.stdout.split()
    return set(names), where


def test_what_the_sources_name_of_the_bindings_comes_along(tmp_path: Path) -> None:
    names_within, _ = names_of_bindings(pack(tmp_path / "with.pyz", "--with-nvml"))
    sources = b"".join(source for _, source in find_needed_modules("assay.node.probe.__main__").values()).decode()
    named = {word for word in re.findall(r"\w+", sources) if hasattr(pynvml, word) and re.match("(?i)c?_?nvml", word)}
    errors = {name for name in dir(pynvml) if name.startswith(("NVML_ERROR_", "NVMLError"))}
    assert len(named) > 50
    assert named | errors <= names_within


def test_no_source_puts_the_name_of_a_binding_together() -> None:
    """The pack would leave out what such a name means."""
    modules = find_needed_modules("assay.node.probe.__main__") | find_needed_modules("assay.node.agent.__main__")
    parts = [
        part.value
        for _, source in modules.values()
        for text in ast.walk(ast.parse(source))
        if isinstance(text, ast.JoinedStr)
        for part in text.values
        if isinstance(part, ast.Constant)
    ]
    assert len(parts) > 50
    assert [part for part in parts if re.search(r"nvml[A-Z]|NVML_|nvml$", str(part))] == []


def test_what_no_source_names_of_the_bindings_stays_behind() -> None:
    source = (
        "from re import *\nimport random\nimport sys\nA = 1\nB = A\nC = 2\ndef f():\n    return g()\n"
        "def g():\n    return sys, 'C'\ndef h(): ...\nD = 3\n"
    )
    kept = source.replace("A = 1\nB = A\n", "").replace("import random\n", "").partition("def h")[0]
    assert prune_bindings(source, [b"x.f()"]) == kept
    assert prune_bindings(source, [b"getattr(x, 'B')"]) == "from re import *\nA = 1\nB = A\n"


def test_another_entry_brings_what_it_needs() -> None:
    assert "assay.node.probe.kernel_log" in find_needed_modules("assay.node.probe.kernel_log")
    names = zipfile.ZipFile(io.BytesIO(build_pack("assay.node.probe.kernel_log"))).namelist()
    assert names == [
        "__main__.py",
        "assay/__init__.py",
        "assay/model/__init__.py",
        "assay/model/reading.py",
        "assay/node/__init__.py",
        "assay/node/probe/__init__.py",
        "assay/node/probe/kernel_log.py",
        "assay/node/probe/node_access.py",
    ]


def test_the_load_tool_travels_without_numpy_and_runs_where_numpy_is(tmp_path: Path) -> None:
    pack = tmp_path / "assay-load.pyz"
    subprocess.run(
        [sys.executable, "-m", "assay.node.probe.pack", pack, "--load-tool"], check=True, capture_output=True
    )
    assert pack.stat().st_size < 300_000
    with zipfile.ZipFile(pack) as archive:
        assert not [name for name in archive.namelist() if not name.startswith(("assay/", "__main__.py"))]
    words = ["battery", "--engine", "numpy", "--size", "small", "--devices", "2", "--seeds", "1", "--tests", "modulo"]
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    run = partial(subprocess.run, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    done = run([sys.executable, pack, *words])
    first, *units, end = map(json.loads, done.stdout.splitlines())
    assert "run" in first
    assert units
    assert end["end"] == "done"
    bare = run([sys.executable, "-I", "-S", pack, *words])
    assert bare.returncode == 2, "without numpy and JAX it says so"
    assert "Traceback" not in bare.stderr


COUNTED = """\
import builtins, collections, sys
sources, real = collections.Counter(), compile
def counted(source, path, *rest, **named):
    sources[path] += 1
    return real(source, path, *rest, **named)
builtins.compile = counted
{once}
sys.path.insert(0, {archive!r})
import assay.node.probe.__main__
ours = [times for path, times in sources.items() if {archive!r} in str(path)]
print(len(ours) > 20, max(ours, default=0))
"""


def test_a_node_compiles_each_module_once(tmp_path):
    (tmp_path / "probe.pyz").write_bytes(build_pack())
    script = COUNTED.format(once=COMPILE_ONCE, archive=str(tmp_path / "probe.pyz"))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True 1\n"


def with_other_magic(content: bytes) -> bytes:
    """Return the pack as a Python of another version would have made it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as made, zipfile.ZipFile(out, "w") as other:
        for name in made.namelist():
            said = made.read(name)
            other.writestr(name, b"\0\0\r\n" + said[4:] if name.endswith(".pyc") else said)
    return out.getvalue()


def test_what_comes_compiled_is_not_compiled_again_and_another_python_passes_it_over(tmp_path):
    content = build_pack(with_nvml=True, with_code=True)
    said = {}
    for name, pack_content in (("this", content), ("another", with_other_magic(content))):
        (tmp_path / f"{name}.pyz").write_bytes(pack_content)
        script = COUNTED.format(once=COMPILE_ONCE, archive=str(tmp_path / f"{name}.pyz"))
        for more in ("", "\nimport pynvml; print(pynvml.__file__)"):
            command = [sys.executable, "-I", "-S", "-c", script + more]
            said[name, bool(more)] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (said["this", False], said["another", False]) == ("False 0\n", "True 1\n")
    assert all(said[name, True].endswith(f"{name}.pyz/pynvml.py\n") for name in ("this", "another"))
    assert "assay/node/load_tools/fio.pyc" not in zipfile.ZipFile(io.BytesIO(content)).namelist(), "few starts load"
