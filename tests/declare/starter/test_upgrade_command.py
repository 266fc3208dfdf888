"""`assay upgrade` as people and machines call it: what it prints, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay.act.loop import history_replay
from assay.cli.app import load_verb
from assay.declare.starter import new_repository
from assay.declare.starter.starter_record import RECORD, TEXTS, read_record
from assay.model.errors import AssayError
from tests.declare.starter.copied_fleet import NEW, OLD, CopiedFleet, encode, lines
from tests.support.forked_assay import run_assay

upgrade_app = load_verb("upgrade")

A, B, TEN = "suites/a.py", "specs/b.yaml", lines(*range(1000, 1010))
MERGED = {A: lines("theirs", *range(1001, 1010)), B: "newer\n", "specs/new.yaml": "new\n"}

Upgrade = Callable[..., Result]


@pytest.fixture
def upgrade(copied: CopiedFleet, monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Call `assay upgrade`, of a version of assay that ships these files."""

    def call(*words: str, theirs: Mapping[str, str] = MERGED, of: str = NEW) -> Result:
        files = {path: encode(text) for path, text in theirs.items()}
        monkeypatch.setattr(new_repository, "render_starter", lambda ci: (of, files) if ci == "github" else None)
        return CliRunner().invoke(upgrade_app, ["--fleet", str(copied.root), *words])

    return call


def test_it_shows_what_it_would_do_and_writes_nothing(copied: CopiedFleet, upgrade: Upgrade) -> None:
    copied.change({A: TEN + "site\n"})
    done = upgrade()
    assert done.exit_code == 0, done.exception
    assert done.stdout == lines(
        "updated   specs/b.yaml",
        "new       specs/new.yaml",
        "merged    suites/a.py",
        f"assay {OLD} → {NEW}: 1 updated, 1 new, 1 merged",
        "To write this into the working tree: `assay upgrade --apply`",
    )
    assert copied.git("status", "--porcelain", "--ignored") == ""


def test_it_writes_what_it_showed_and_says_what_comes_next(copied: CopiedFleet, upgrade: Upgrade) -> None:
    copied.change({A: TEN + "site\n"})
    shown, done = upgrade(), upgrade("--apply")
    assert done.exit_code == 0, done.exception
    assert done.stdout.splitlines()[:4] == shown.stdout.splitlines()[:4]
    for told in ("assay check", "assay plan --base HEAD~1", "assay specs codeowners", "git reset --hard"):
        assert told in done.stdout
    assert copied.read()[A] == MERGED[A] + "site\n"
    copied.commit("upgraded")
    again = upgrade("--apply")
    assert (again.exit_code, again.stdout) == (
        0,
        "kept      suites/a.py: you changed it, and assay did not\nassay 0.1.0 → 0.1.0: 1 kept, 2 unchanged\n",
    )


def test_a_conflict_is_exit_code_1_shown_and_written(copied: CopiedFleet, upgrade: Upgrade) -> None:
    copied.change({A: lines("site", *range(1001, 1010))})
    for words in ((), ("--apply",)):
        done = upgrade(*words)
        assert done.exit_code == 1
        assert "conflict  suites/a.py: 1 place that both sides changed\n" in done.stdout
    assert "`git status` lists them" in done.stdout
    for words in ((), ("--apply",)):
        refused = upgrade(*words, theirs={**MERGED, A: "newest\n"})
        assert isinstance(refused.exception, AssayError)
        assert "conflicts are open: suites/a.py" in str(refused.exception)


def test_machines_get_every_file(copied: CopiedFleet, upgrade: Upgrade) -> None:
    copied.change({A: lines("site", *range(1001, 1010))})
    copied.write({B: "not committed\n"})
    told = json.loads(upgrade("--format", "json").stdout)
    assert {name: told[name] for name in ("from", "to", "applied", "finished", "uncommitted")} == {
        "from": OLD,
        "to": NEW,
        "applied": False,
        "finished": False,
        "uncommitted": [B],
    }
    assert {file["path"]: file["status"] for file in told["files"]} == {
        A: "conflict",
        B: "conflict",
        "specs/new.yaml": "new",
    }


@pytest.mark.parametrize("how", ["changed", "staged", "untracked", "ignored"])
def test_what_is_not_committed_is_not_written_over(copied: CopiedFleet, upgrade: Upgrade, how: str) -> None:
    if how in ("changed", "staged"):
        copied.write({A: TEN + "site\n"})
    else:
        copied.write({"specs/new.yaml": "new\n"})
        copied.change({A: None})
        copied.write({A: TEN})
    if how == "staged":
        copied.git("add", A)
    if how == "ignored":
        (copied.root / ".git/info/exclude").write_text(f"{A}\n")
    before = copied.read()
    assert "Not committed: suites/a.py. Commit or stash it before you apply." in upgrade().stdout
    done = upgrade("--apply")
    assert isinstance(done.exception, AssayError)
    assert "not committed: suites/a.py" in str(done.exception)
    assert copied.read() == before


def test_changes_elsewhere_are_no_hindrance(copied: CopiedFleet, upgrade: Upgrade) -> None:
    copied.write({"inventory/pool.yml": "being edited\n", "suites/own.py": "being written\n"})
    done = upgrade("--apply")
    assert done.exit_code == 0
    assert "`git reset --hard` would also undo your other changes" in done.stdout
    assert copied.read()["inventory/pool.yml"] == "being edited\n"


def test_many_files_of_a_folder_that_fare_alike_are_one_line(copied: CopiedFleet, upgrade: Upgrade) -> None:
    done = upgrade(theirs={A: TEN, B: "b\n", **{f"docs/p{n}.md": f"{n}\n" for n in range(5)}, "docs/x/y.md": "y\n"})
    assert done.stdout.splitlines()[:2] == ["new       docs/ (5 files)", "new       docs/x/y.md"]


class TestWithoutRecord:
    """A fleet that an earlier version made."""

    @pytest.fixture(autouse=True)
    def _without(self, copied: CopiedFleet) -> None:
        copied.change({"ansible.cfg": "x\n", RECORD: None, TEXTS: None})

    def test_it_is_told_which_commit_to_name(self, copied: CopiedFleet, upgrade: Upgrade) -> None:
        told = str(upgrade().exception)
        assert "an earlier version made this fleet" in told
        commit = copied.git("rev-parse", "--short", "HEAD").strip()
        assert f"`assay upgrade --base {commit}`" in told
        assert "What was edited before that commit would count as assay's" in told

    def test_a_commit_is_the_base_and_the_next_time_there_is_a_record(
        self, copied: CopiedFleet, upgrade: Upgrade
    ) -> None:
        copied.change({A: TEN + "site\n", "suites/own.py": "own\n"})
        done = upgrade("--base", "HEAD~1", "--apply")
        assert done.exit_code == 0, done.exception
        assert copied.read()[A] == MERGED[A] + "site\n"
        assert "suites/own.py" in copied.read(), "what else was in the commit is the site's own"
        copied.commit("upgraded")
        assert copied.record().version == NEW
        assert isinstance(upgrade("--base", "HEAD").exception, AssayError)

    def test_a_shallow_clone_is_told_so(self, copied: CopiedFleet, tmp_path: Path) -> None:
        clone = tmp_path / "clone"
        subprocess.run(["git", "clone", "--quiet", "--depth=1", copied.root.as_uri(), clone], check=True)
        done = CliRunner().invoke(upgrade_app, ["--fleet", str(clone)])
        assert "git fetch --unshallow" in str(done.exception)

    @pytest.mark.parametrize("base", ["nonsense", "--all", "HEAD~100"])
    def test_an_unknown_commit_is_refused(self, upgrade: Upgrade, base: str) -> None:
        assert isinstance(upgrade(f"--base={base}").exception, AssayError)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (RECORD, "{"),
        (RECORD, "[]"),
        (RECORD, '{"version": "0.0.9", "ci": "github", "files": {"../a": "x"}}'),
        (RECORD, '{"version": "0.0.9", "ci": "elsewhere", "files": {}}'),
        (RECORD, '<<<<<<< ours\n{"version": "0.0.9"}'),
        (RECORD, '{"version": "0.0.9", "ci": "github", "files": {"suites/a.py": "another"}}'),
        (TEXTS, "no archive"),
        (TEXTS, None),
    ],
)
def test_a_damaged_record_is_told_with_the_way_out(
    copied: CopiedFleet, upgrade: Upgrade, path: str, content: str | None
) -> None:
    copied.write({path: content})
    done = upgrade()
    assert isinstance(done.exception, AssayError), done.exception
    assert "git checkout COMMIT -- .assay-starter" in done.exception.fix


def test_an_older_assay_does_not_take_a_fleet_back(upgrade: Upgrade) -> None:
    done = upgrade(of="0.0.8")
    assert "these files are of assay 0.0.9, and this is 0.0.8" in str(done.exception)


@pytest.mark.parametrize("folder", ["nothing", "plain"])
def test_what_is_no_fleet_in_git_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "plain/inventory").mkdir(parents=True)
    done = CliRunner().invoke(upgrade_app, ["--fleet", str(tmp_path / folder)])
    assert isinstance(done.exception, AssayError)
    assert done.exception.fix


@pytest.mark.slow
def test_a_real_fleet_goes_from_an_older_starter_to_this_one_and_is_right(tmp_path: Path) -> None:
    root = tmp_path / "ours"
    assert run_assay("init", root).returncode == 0
    record = read_record(root)
    assert record
    assert record.version == version("assay-fleet")
    files = {path: (root / path).read_bytes() for path in record.hashes}
    assert len(files) > 300
    assert not [path for path in files if path.startswith("inventory/")]
    xid = files["specs/faults/xid.yaml"]
    older = {**files, "specs/faults/xid.yaml": xid.replace(b"owner:", b"# of an older version\nowner:", 1)}
    del older["docs/trends.md"]
    (root / "docs/trends.md").unlink()
    fleet = CopiedFleet(root, older)
    (root / ".gitignore").write_bytes(files[".gitignore"])
    (root / "inventory/pool.yml").unlink()
    fleet.change({"specs/faults/xid.yaml": older["specs/faults/xid.yaml"] + b"# the site's\n"})
    done = run_assay("upgrade", "--apply", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "merged    specs/faults/xid.yaml\n" in done.stdout
    assert "new       docs/trends.md\n" in done.stdout
    assert (root / "specs/faults/xid.yaml").read_bytes() == xid + b"# the site's\n"
    check = subprocess.run(
        [sys.executable, "-m", "assay", "check"], cwd=root, capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout


def test_what_history_speaks_against_needs_a_person(copied: CopiedFleet, upgrade: Upgrade, monkeypatch) -> None:
    (copied.root / ".assay").mkdir(exist_ok=True)
    (copied.root / ".assay/ledger.sqlite").touch()
    monkeypatch.setattr(
        history_replay, "replay_upgrade", lambda plan, root, *_: (None, "77 nodes would have been closed")
    )
    shown = upgrade()
    assert shown.exit_code == 1
    assert "A person must look: 77 nodes would have been closed. Whoever agrees adds --despite-history." in shown.stdout
    refused = upgrade("--apply")
    assert isinstance(refused.exception, AssayError)
    assert "the stored history speaks against it: 77 nodes" in str(refused.exception)
    assert copied.read()[B] != MERGED[B]
    assert upgrade("--apply", "--despite-history").exit_code == 0
    assert copied.read()[B] == MERGED[B]
