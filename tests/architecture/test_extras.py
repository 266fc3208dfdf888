"""What the core of the package needs is its dependencies; every other import names the extra that installs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from assay.model.errors import EXTRA_OF_MODULE
from tests.architecture.distributions import CORE, EXTRAS, find_modules
from tests.support.places import ROOT

BLOCKED = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRA_OF_MODULE)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
from assay.cli.app import main
main()
"""


def test_the_extra_of_a_module_installs_it() -> None:
    core = find_modules(CORE)
    for module, extra in EXTRA_OF_MODULE.items():
        assert module in find_modules(EXTRAS[extra]), module
        assert module not in core, f"{module} is in the core"


@pytest.mark.parametrize("module", ["pytest", "xdist", "jsonschema"])
def test_a_plain_install_judges_by_workers_and_by_schemas(module: str) -> None:
    assert module in find_modules(CORE)


def test_all_is_every_extra_but_what_only_nodes_need() -> None:
    (line,) = EXTRAS["all"]
    assert Requirement(line).extras == set(EXTRAS) - {"all", "load"}


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("check",), None),
        (("status",), None),
        (("suites", "list"), None),
        (("history", "--outcomes"), "duckdb"),
        (("serve",), "web"),
        (("reconcile", "--once"), "ansible"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_without_extras_a_verb_works_or_names_the_one_that_it_needs(words: tuple[str, ...], extra: str | None) -> None:
    env = os.environ | {"ASSAY_CONTEXT": "fleet"}  # `make run` leaves the lab chosen
    command = [sys.executable, "-c", BLOCKED, *words]
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if extra is None:
        assert (run.returncode, run.stderr) == (0, "")
    else:
        assert run.returncode == 2
        assert f"pip install 'assay-fleet[{extra}]'" in run.stderr
