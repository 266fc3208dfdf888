"""Creates a fleet repository for `assay init`: the example's specs, suites, playbooks and workflows, and four nodes."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import Distribution, distribution, version
from pathlib import Path
from typing import Any

import yaml

from assay.declare.repository.tree import WorkingFolder
from assay.declare.rules.repository_files import FILE as CODE_OWNERS
from assay.declare.rules.repository_files import format_code_owners
from assay.declare.schemas import write_schemas
from assay.declare.spec_reader import read_specs
from assay.declare.starter.starter_record import format_record, is_below, make_record
from assay.model.errors import AssayError
from assay.model.specs.burn_in import BurnIn

NAME = "assay-fleet"
PACKAGE = f"{NAME}[all]"
HERE = Path(__file__).parent
OWN_FILES = HERE / "own"
SHARED_PATHS = (
    "specs",
    "suites",
    "playbooks",
    "docs",
    "deploy",
    "ansible.cfg",
    "package.json",
    "package-lock.json",
    ".github/actions/comment",
    ".github/workflows/pull-request.yml",
    ".github/workflows/merge.yml",
    ".github/workflows/scheduled.yml",
    ".github/workflows/report.yml",
)
"""Paths that are copied from the example unchanged. The wheel contains them (`carries` in pyproject.toml)."""
EXCLUDED_PATHS = (
    *("specs/fabrics", "specs/schemas", "docs/reference/answers", "docs/reference/answers.md"),
    *("docs/design.md", "docs/loop.svg", "docs/report.png"),
)
"""The example's cables belong to its own nodes. This version of assay writes the schemas of specs, and prints those of
answers. Pages on assay's own design stay out."""
POLICY = Path("specs/lifecycle/default.yaml")
NO_WIPE = "null  # say how, and add wipe to `may` of the profile, when you want it (docs/day-0.md)\n"
USUAL_BURN_IN = "day"
CI_PATHS = {"github": ".github", "gitlab": ".gitlab-ci.yml"}
"""What each forge reads. `both` copies the paths of all."""
SITE_PATHS = ("inventory", "specs/fabrics", "specs/owners.yaml", CODE_OWNERS)
"""Examples that a site replaces by its own. No later version of assay touches them."""
RENAMED_FILES = {"gitignore": ".gitignore"}
"""Name in the package → name in the repository, for files that would have an effect inside the package."""


def create_repository(folder: Path, ci: str = "github", burn_in: str = USUAL_BURN_IN) -> None:
    """Create a fleet repository in `folder`, which must be empty or not exist. `ci`: github, gitlab or both.

    `burn_in`: the BurnIn of nodes before they serve. An upgrade takes another than the usual one for the site's change.
    Raises AssayError if the folder is not empty, or cannot be written.
    """
    _require_empty(folder)
    try:
        _fill(folder, ci)
        record = make_record(version(NAME), ci, _read_shared_files(folder))
        for path, content in format_record(record).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        if burn_in != USUAL_BURN_IN:
            _choose_burn_in(folder, burn_in)
    except OSError as error:
        raise AssayError(
            f"cannot be written: {error.strerror or error}", where=str(error.filename or folder)
        ) from error
    _init_git(folder)


def render_starter(ci: str) -> tuple[str, dict[str, bytes]]:
    """Return this version of assay, and the files that it copies into a fleet repository, but for the site's own."""
    with tempfile.TemporaryDirectory(prefix="assay-upgrade-") as folder:
        _fill(Path(folder), ci)
        return version(NAME), _read_shared_files(Path(folder))


def find_example() -> Path:
    """Return the folder of the example's files: in the wheel, or the root of a checkout."""
    packed = HERE / "example"
    return packed if packed.is_dir() else HERE.parents[3]


def make_requirement(installed: Distribution | None = None) -> str:
    """Return the lines that install this version of assay with all that a fleet's workflows use.

    They name where it was installed from (PEP 610, `direct_url.json`). What came from a file of this machine cannot be
    installed elsewhere: comments then say what to write instead.
    """
    package = installed or distribution(NAME)
    origin: dict[str, Any] = json.loads(package.read_text("direct_url.json") or "{}")
    url, version = origin.get("url", ""), package.version
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return f"{PACKAGE} @ {vcs['vcs']}+{url}@{vcs['commit_id']}\n"
    if url.startswith("https:"):
        digest = origin.get("archive_info", {}).get("hashes", {}).get("sha256")
        return f"{PACKAGE} @ {url}{f'#sha256={digest}' if digest else ''}\n"
    return f"{_describe_local_origin(version) if url else ''}{PACKAGE}=={version}\n"


def _describe_local_origin(version: str) -> str:
    return f"""\
# This assay was installed from files of one machine. If your package index does not have {version}, replace the line
# below by a wheel that you commit, or by a commit of a git repository:
#   ./wheels/assay_fleet-{version}-py3-none-any.whl[all]
#   {PACKAGE} @ git+https://HOST/PATH.git@COMMIT
"""


def _require_empty(folder: Path) -> None:
    """Raise AssayError unless a folder is empty or does not exist. A `.git` of an empty clone is allowed."""
    if folder.exists() and not folder.is_dir():
        raise AssayError(f"{folder} is a file", fix="name a folder that is empty or not there yet")
    names = sorted(path.name for path in folder.iterdir() if path.name != ".git") if folder.is_dir() else []
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        fix = "name a folder that is empty or not there yet; nothing was written"
        raise AssayError(f"{folder} is not empty: it holds {names[0]}{more}", fix=fix)


def _read_shared_files(folder: Path) -> dict[str, bytes]:
    """Return what was copied into a folder and may change in a later version."""
    files = {file.relative_to(folder): file for file in sorted(folder.rglob("*")) if file.is_file()}
    return {path.as_posix(): file.read_bytes() for path, file in files.items() if not is_of_site(path.as_posix())}


def is_of_site(path: str) -> bool:
    """Return whether no version of assay touches a path of a fleet repository."""
    return is_below(path, (*SITE_PATHS, ".git"))


def _fill(folder: Path, ci: str) -> None:
    left_out = [path for forge, path in CI_PATHS.items() if ci not in (forge, "both")]
    for name in SHARED_PATHS:
        _copy(find_example(), find_example() / name, folder, left_out)
    _copy(OWN_FILES, OWN_FILES, folder, left_out)
    for name, true_name in RENAMED_FILES.items():
        (folder / name).rename(folder / true_name)
    _set_value(folder / POLICY, "watch", "trust", "fleet")  # the example acts: its machines exist in the lab only
    _set_value(folder / "specs/nodes/hgx-h100.yaml", NO_WIPE, "wipe")  # which the profile of a new fleet forbids
    (folder / "requirements.txt").write_text(make_requirement(), encoding="utf-8")
    write_schemas(folder)
    (folder / CODE_OWNERS).write_text(format_code_owners(read_specs(WorkingFolder(folder))[0]), encoding="utf-8")


def _choose_burn_in(folder: Path, name: str) -> None:
    """Let nodes of a new fleet have another burn-in before they serve, and stay there for its hours."""
    specs = [entry.spec for entry in read_specs(WorkingFolder(folder))[0]]
    hours = next(spec.hours for spec in specs if isinstance(spec, BurnIn) and spec.name == name)
    for field, text in (("burn_in", f"[{name}, host-{name}]"), ("soak_hours", f"{hours:g}")):
        _set_value(folder / POLICY, text, "states", "test", field)


def _set_value(file: Path, new: str, *keys: str) -> None:
    """Write another value into a YAML file, and leave the rest of its text as it is."""
    text = file.read_text(encoding="utf-8")
    place: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    for key in keys:
        place = next(value for name, value in place.value if name.value == key)
    file.write_text(f"{text[: place.start_mark.index]}{new}{text[place.end_mark.index :]}", encoding="utf-8")


def _copy(root: Path, source: Path, folder: Path, left_out: Sequence[str]) -> None:
    """Copy a file, or all files below a folder, from `root` to the same place below `folder`."""
    excluded = [*left_out, *(EXCLUDED_PATHS if root != OWN_FILES else ())]
    for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
        path = file.relative_to(root)
        if not file.is_file() or "__pycache__" in path.parts or any(map(path.is_relative_to, excluded)):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _init_git(folder: Path) -> None:
    """Run `git init` without a commit: the first one is the owner's. Without git, the folder stays as it is."""
    if (folder / ".git").exists() or not shutil.which("git"):
        return
    run = subprocess.run(
        ["git", "init", "--quiet", "--initial-branch=main", str(folder)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        fix = "the files are there; run it yourself"
        raise AssayError(f"git init failed: {run.stderr.strip()}", where=str(folder), fix=fix)
