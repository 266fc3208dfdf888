"""The command line: all verbs are listed and documented, errors are sentences, and start-up is cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli import app as cli
from assay.cli.app import VERBS
from assay.model.errors import AssayError
from tests.support.forked_assay import run_assay


def start_assay(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `assay` as a person does, in a new process."""
    return subprocess.run([sys.executable, "-m", "assay", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str) -> None:
    answer = CliRunner().invoke(cli.app, [verb, "--help"])
    assert answer.exit_code == 0, answer.output
    assert "Usage" in answer.stdout


def test_the_verbs_are_listed_in_the_order_of_the_loop() -> None:
    listed = CliRunner().invoke(cli.app, ["--help"]).stdout
    places = [listed.index(f" {verb} ") for verb in VERBS]
    assert places == sorted(places)


def test_an_unknown_verb_is_a_mistake_of_use() -> None:
    answer = start_assay("reconcil")
    assert answer.returncode == 2
    assert "reconcil" in answer.stderr


def test_trouble_is_said_with_its_place_and_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trouble(**_: object) -> None:
        raise AssayError("no such rail", where="specs/fabrics/compute.yaml:7", fix="rails count from 0")

    monkeypatch.setattr(cli, "app", trouble)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err == "assay: specs/fabrics/compute.yaml:7: no such rail\n  → rails count from 0\n"


def test_a_mistake_of_ours_is_said_plainly_and_its_traceback_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        raise KeyError("rails")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    said = capsys.readouterr().err
    assert "Traceback" not in said
    kept = Path(said.strip().rpartition("with ")[2])
    assert "KeyError" in kept.read_text()
    kept.unlink()


LARGE = {"dbos", "duckdb", "jinja2", "kubernetes", "networkx", "numpy", "psycopg", "pytest", "requests", "sqlalchemy"}
SAYS_LARGE_MODULES = f"""
import atexit, sys
atexit.register(lambda: print(sorted({LARGE} & set(sys.modules))))
from assay.cli.app import main
main()
"""


@pytest.mark.parametrize("words", [("status", "--help"), ("tickets", "--help"), ("hold", "--help")], ids=" ".join)
def test_a_small_verb_imports_nothing_large(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAYS_LARGE_MODULES, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [(), ("trends",), ("trends", "rules"), ("status",)], ids=" ".join)
def test_the_short_word_for_help_is_taken_everywhere(words):
    short, long = (CliRunner().invoke(cli.app, [*words, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)


def test_the_version_is_that_of_the_package():
    assert run_assay("--version").stdout == f"assay {version('assay-fleet')}\n"
