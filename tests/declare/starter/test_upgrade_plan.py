"""What an upgrade does with one file: by what the site did to it, and what assay did."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.declare.starter.copied_fleet import NEW, CopiedFleet, lines

A, B, TEN = "suites/a.py", "specs/b.yaml", lines(*range(1000, 1010))
SITE, THEIRS = lines("site", *range(1001, 1010)), lines(*range(1000, 1009), "theirs")
REST = {B: lines("b")}


@pytest.mark.parametrize(
    ("site", "theirs", "status", "text"),
    [
        ({}, {A: TEN}, "unchanged", TEN),
        ({}, {A: THEIRS}, "updated", THEIRS),
        ({A: SITE}, {A: TEN}, "kept", SITE),
        ({A: SITE}, {A: SITE}, "unchanged", SITE),
        ({A: SITE}, {A: THEIRS}, "merged", lines("site", *range(1001, 1009), "theirs")),
        ({A: SITE + "more\n"}, {A: SITE}, "kept", SITE + "more\n"),
        ({A: None}, {A: TEN}, "kept", None),
        ({A: None}, {A: THEIRS}, "kept", None),
        ({}, {}, "removed", None),
        ({A: SITE}, {}, "kept", SITE),
    ],
)
def test_a_file_that_was_copied(
    copied: CopiedFleet, site: Mapping[str, str | None], theirs: Mapping[str, str], status: str, text: str | None
) -> None:
    copied.change(site)
    assert copied.upgrade({**theirs, **REST})[A].status == status
    assert copied.read().get(A) == text
    copied.commit("upgraded")
    assert not copied.plan({**theirs, **REST}).is_needed


def test_what_was_deleted_on_both_sides_is_no_longer_spoken_of(copied: CopiedFleet) -> None:
    copied.change({A: None})
    assert A not in copied.upgrade(REST)
    assert A not in copied.record().hashes


def test_what_both_changed_alike_is_marked_as_git_marks_it(copied: CopiedFleet) -> None:
    copied.change({A: SITE})
    told = copied.upgrade({A: lines("theirs", *range(1001, 1010)), **REST})
    assert (told[A].status, told[A].reason) == ("conflict", "1 place that both sides changed")
    marked = lines("<<<<<<< this fleet", "site", "=======", "theirs", f">>>>>>> assay {NEW}", *range(1001, 1010))
    assert copied.read()[A] == marked
    assert copied.git("status", "--porcelain", A) == f"UU {A}\n"
    assert [copied.git("show", f":{stage}:{A}") for stage in (1, 2, 3)] == [
        TEN,
        SITE,
        lines("theirs", *range(1001, 1010)),
    ]
    copied.git("checkout", "--theirs", A)
    copied.commit("resolved")
    assert not copied.plan({A: lines("theirs", *range(1001, 1010)), **REST}).is_needed


def test_a_fleet_in_a_folder_of_a_larger_repository_gets_its_conflict_at_its_place(tmp_path: Path) -> None:
    CopiedFleet(tmp_path, {})
    root = tmp_path / "fleet"
    root.mkdir()
    fleet = CopiedFleet(root, {A: TEN})
    for file in (root / ".git").rglob("*"):
        if file.is_file():
            file.unlink()
    (root / ".git" / "HEAD").unlink(missing_ok=True)
    (root / ".git").rename(tmp_path / "gone")
    fleet.change({A: SITE})
    assert fleet.upgrade({A: lines("theirs", *range(1001, 1010))})[A].status == "conflict"
    assert "UU fleet/suites/a.py" in fleet.git("status", "--porcelain")
    assert fleet.site.list_uncommitted([A]) == [A]


def test_binary_files_are_not_merged_and_git_has_both(copied: CopiedFleet) -> None:
    copied.upgrade({A: TEN, **REST, "firmware/x.bin": b"\0old"})
    copied.commit("with firmware")
    copied.change({"firmware/x.bin": b"\0site"})
    assert copied.upgrade({A: TEN, **REST, "firmware/x.bin": b"\0new"})["firmware/x.bin"].status == "conflict"
    assert (copied.root / "firmware/x.bin").read_bytes() == b"\0site"
    assert copied.git("show", ":3:firmware/x.bin") == "\0new"


def test_a_file_of_the_sites_own_stays_when_assay_ships_one_of_its_name(copied: CopiedFleet) -> None:
    copied.change({"suites/c.py": "own\n"})
    for theirs in ("theirs\n", "newer\n"):
        told = copied.upgrade({A: TEN, **REST, "suites/c.py": theirs})
        assert (told["suites/c.py"].status, copied.read()["suites/c.py"]) == ("kept", "own\n")
        copied.commit("upgraded")


def test_new_files_come_but_not_into_a_folder_that_the_site_deleted(copied: CopiedFleet) -> None:
    copied.change({A: None})
    told = copied.upgrade({A: TEN, **REST, "suites/c.py": "c\n", "specs/c.yaml": "c\n", "docs/c.md": "c\n"})
    assert {path: told[path].status for path in ("suites/c.py", "specs/c.yaml", "docs/c.md")} == {
        "suites/c.py": "kept",
        "specs/c.yaml": "new",
        "docs/c.md": "new",
    }
    assert "suites/c.py" not in copied.read()


def test_what_the_site_moved_is_merged_where_it_is_now(copied: CopiedFleet) -> None:
    copied.change({A: None, "suites/own/a2.py": SITE})
    told = copied.upgrade({A: THEIRS, **REST})
    assert (told["suites/own/a2.py"].status, told["suites/own/a2.py"].reason) == ("merged", f"you moved it from {A}")
    assert copied.read()["suites/own/a2.py"] == lines("site", *range(1001, 1009), "theirs")
    assert A not in copied.read()


def test_what_the_site_moved_and_assay_dropped_is_the_sites(copied: CopiedFleet) -> None:
    copied.change({A: None, "suites/a2.py": TEN})
    assert copied.upgrade(REST)["suites/a2.py"].status == "kept"
    assert copied.read()["suites/a2.py"] == TEN


def test_what_assay_moved_takes_the_sites_changes_along(copied: CopiedFleet) -> None:
    copied.change({A: SITE})
    told = copied.upgrade({"suites/new/a.py": THEIRS, **REST})
    assert (told["suites/new/a.py"].status, told["suites/new/a.py"].reason) == ("merged", f"assay moved it from {A}")
    assert copied.read()["suites/new/a.py"] == lines("site", *range(1001, 1009), "theirs")
    assert A not in copied.read()


def test_a_conflict_in_what_assay_moved_is_one_of_its_new_place(copied: CopiedFleet) -> None:
    copied.change({A: SITE})
    told = copied.upgrade({"suites/new/a.py": lines("theirs", *range(1001, 1010)), **REST})
    assert told["suites/new/a.py"].status == "conflict"
    assert "UU suites/new/a.py" in copied.git("status", "--porcelain")


def test_a_spec_that_the_site_made_of_one_of_ours_is_the_sites(copied: CopiedFleet) -> None:
    copied.change({A: None, "suites/own.py": lines(*"abcdefg", 1007, 1008, 1009)})
    told = copied.upgrade({A: THEIRS, **REST})
    assert (told[A].status, copied.read()["suites/own.py"]) == ("kept", lines(*"abcdefg", 1007, 1008, 1009))


@pytest.mark.parametrize("site", ["link", "folder", "link above"])
def test_nothing_is_written_through_or_over_what_is_no_file(copied: CopiedFleet, tmp_path: Path, site: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.py").write_text("mine")
    copied.write({A: None})
    if site == "folder":
        copied.write({f"{A}/x": "x"})
    elif site == "link":
        (copied.root / A).parent.mkdir(exist_ok=True)
        (copied.root / A).symlink_to(tmp_path / "elsewhere/a.py")
    else:
        (copied.root / "suites").rmdir()
        (copied.root / "suites").symlink_to(tmp_path / "elsewhere")
    copied.commit("the site's")
    told = copied.upgrade({A: THEIRS, "suites/c.py": "c\n", **REST})
    assert told[A].status == "kept"
    assert told[A].reason.endswith("a folder" if site == "folder" else "a symbolic link")
    assert [file.read_text() for file in (tmp_path / "elsewhere").iterdir()] == ["mine"]


def test_what_is_the_sites_own_is_never_touched_even_if_a_record_names_it(copied: CopiedFleet) -> None:
    copied.upgrade({A: TEN, **REST, "inventory/pool.yml": "ours\n", "specs/fabrics/f.yaml": "f\n"})
    copied.commit("a record that names them")
    told = copied.upgrade({A: TEN, **REST})
    assert "inventory/pool.yml" not in told
    assert copied.read()["inventory/pool.yml"] == "ours\n"


def test_a_readme_that_the_site_wrote_is_not_mixed_with_ours(copied: CopiedFleet) -> None:
    copied.upgrade({A: TEN, **REST, "README.md": TEN})
    copied.change({"README.md": SITE})
    assert copied.upgrade({A: TEN, **REST, "README.md": THEIRS})["README.md"].status == "kept"
    assert copied.read()["README.md"] == SITE


def test_a_script_stays_one_that_can_be_run(copied: CopiedFleet) -> None:
    (copied.root / A).chmod(0o755)
    copied.commit("a script")
    copied.upgrade({A: THEIRS, **REST})
    assert (copied.root / A).stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 60))])
def test_whatever_both_sides_do_nothing_that_the_site_wrote_is_lost(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    base = {f"suites/f{n}.py": [f"f{n} line {m}" for m in range(dice.randint(3, 30))] for n in range(20)}
    fleet = CopiedFleet(tmp_path, {path: lines(*text) for path, text in base.items()})
    site, theirs = edit_randomly(dice, base, "site"), edit_randomly(dice, base, "assay")
    fleet.change({**dict.fromkeys(base, None), **{path: lines(*text) for path, text in site.items()}})
    changes = fleet.upgrade({path: lines(*text) for path, text in theirs.items()})
    after = {path: text.splitlines() for path, text in fleet.read().items()}
    lost = {line for text in site.values() for line in text if "site" in line} - {
        line for text in after.values() for line in text
    }
    assert lost == set()
    conflicts = {path for path, change in changes.items() if change.status == "conflict"}
    for path in set(site) & set(theirs) & set(base) - conflicts:
        deleted = {line for line in base[path] if line not in site[path] or line not in theirs[path]}
        assert not deleted.intersection(after[path]), f"{path}: what one side deleted is back"
        if changes[path].status in ("merged", "updated"):
            assert {line for line in theirs[path] if "assay" in line} <= set(after[path])
    assert not (set(base) - set(site)) & set(after), "what the site deleted is back"
    fleet.git("add", "--all")
    fleet.commit("upgraded")
    again = fleet.plan({path: lines(*text) for path, text in theirs.items()})
    assert again.list_touched() == []


def edit_randomly(dice: random.Random, base: Mapping[str, list[str]], who: str) -> dict[str, list[str]]:
    """Return files as somebody left them: lines inserted, changed and deleted, files deleted, moved and made."""
    files = {path: list(text) for path, text in base.items()}
    for path in list(files):
        for _ in range(dice.choice([0, 0, 1, 2, 4])):
            at, what = dice.randrange(len(files[path]) + 1), dice.choice(["insert", "change", "delete"])
            new = [f"{who} {path} {dice.random()}"] if what != "delete" else []
            files[path][at : at + (what != "insert")] = new
        fate = dice.random()
        if fate < 0.1:
            del files[path]
        elif fate < 0.2:
            files[f"suites/{who}/{path.rpartition('/')[2]}"] = files.pop(path)
    for number in range(3):
        files[f"suites/new{number}.py"] = [f"{who} new {number} {dice.random()}"]
    return files
