"""`assay upgrade` carries what a fleet imports from inner modules of assay to `assay.fleetkit`."""

from __future__ import annotations

import pytest

from assay.declare.starter.upgrade_plan import carry_imports
from tests.declare.starter.copied_fleet import CopiedFleet, lines

NEW = "from assay.fleetkit import"
OLD = "from assay." + "model.errors import"  # in two parts, so that no script that moves modules renames it


@pytest.mark.parametrize(
    "text",
    [
        f"{OLD} AssayError\n",
        f"{OLD} AssayError as Wrong  # ours\r\nx = 1\r\n",
        f"{OLD} (\n    AssayError,  # a reason\n)\n",
        f"def run():\n    try:\n        {OLD} AssayError\n    except ImportError: pass\n",
        f"{OLD} AssayError; {OLD} AssayError as other\n",
        f'# Größe\n"""{NEW} x"""\n{OLD} AssayError\n',
        f"{OLD} AssayError",
    ],
)
def test_only_the_name_of_the_module_changes(text: str) -> None:
    carried = carry_imports(text.encode())
    assert carried.text.decode() == text.replace(OLD, NEW)
    assert carried.left == ()


@pytest.mark.parametrize(
    "text",
    [
        f"{NEW} AssayError\n",
        "import assay\nfrom assay import fleetkit, __version__\nimport assay.fleetkit as kit\n",
        "from .assay.model.errors import AssayError\nimport assays.model\n",
        f'"""An example: {OLD} AssayError"""\n',
        f"<<<<<<< this fleet\n{OLD} AssayError\n",
        f"print 'Python 2'\n{OLD} AssayError\n",
    ],
)
def test_anything_else_stays_as_it_is(text: str) -> None:
    assert carry_imports(text.encode()) == (text.encode(), ())


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("import assay.{old} as errors", "imports assay.{old}: write `from assay.fleetkit import AssayError`"),
        ("from assay.{old} import *", "imports assay.{old}: write `from assay.fleetkit import AssayError`"),
        (
            "from assay.{old} import AssayError, gate",
            "imports assay.{old}: write `from assay.fleetkit import AssayError`; gate may move with any version",
        ),
        ("from assay.validate.results import gate", "imports assay.validate.results: gate may move with any version"),
        ("from assay import lab", "imports assay.lab: it may move with any version"),
        ("import assay.lab.world", "imports assay.lab.world: it may move with any version"),
    ],
)
def test_what_a_person_has_to_change_is_named(text: str, advice: str) -> None:
    old = "model" + ".errors"
    source = lines('"""A check."""', "", text.format(old=old)).encode()
    assert carry_imports(source) == (source, ((3, advice.format(old=old)),))


OURS, OWN = "playbooks/power.py", "tools/site.py"


@pytest.fixture
def site(copied: CopiedFleet) -> CopiedFleet:
    """A fleet of an earlier version that changed a copied file and wrote one of its own."""
    text = lines(f"{OLD} AssayError", *range(1000, 1010))
    (root := copied.root.parent / "site").mkdir()
    fleet = CopiedFleet(root, {OURS: text, "suites/a.py": text})
    fleet.change({OURS: text + "ours = 1\n", OWN: lines(f"{OLD} AssayError"), "tools/plain.py": "x = 1\n"})
    return fleet


def test_copies_that_the_site_changed_and_its_own_files_are_carried_over(site: CopiedFleet) -> None:
    theirs = {OURS: lines(f"{OLD} AssayError", *range(1000, 1010)), "suites/a.py": lines(f"{NEW} AssayError")}
    found = site.upgrade(theirs)
    told = {path: (change.status, change.reason) for path, change in found.items()}
    carried = "its imports of assay are from assay.fleetkit now"
    assert told == {
        OURS: ("merged", f"you changed it, and assay did not; {carried}"),
        "suites/a.py": ("updated", ""),
        OWN: ("merged", carried),
    }
    files = site.read()
    assert files[OURS] == lines(f"{NEW} AssayError", *range(1000, 1010), "ours = 1")
    assert files[OWN] == lines(f"{NEW} AssayError")
    site.commit("upgraded")
    assert site.plan(theirs).list_touched() == []


def test_what_a_merge_brings_together_is_carried_over(site: CopiedFleet) -> None:
    theirs = lines(f"{NEW} AssayError", *range(1000, 1009), "theirs = 1")
    site.change({OURS: lines(f"{OLD} AssayError", *range(1000, 1005), f"{OLD} AssayError as b", *range(1005, 1010))})
    assert site.upgrade({OURS: theirs})[OURS].status == "merged"
    wanted = lines(f"{NEW} AssayError", *range(1000, 1005), f"{NEW} AssayError as b", *range(1005, 1009), "theirs = 1")
    assert site.read()[OURS] == wanted


def test_what_is_left_is_named_with_its_line_and_nothing_is_written(site: CopiedFleet) -> None:
    site.change({OWN: lines("x = 1", "import assay.lab.world"), OURS: None, "suites/a.py": None})
    change = site.plan({})
    (own,) = change.changes
    assert (own.path, own.status, own.reason, own.writes) == (
        OWN,
        "kept",
        f"{OWN}:2 imports assay.lab.world: it may move with any version",
        False,
    )


def test_a_file_that_git_does_not_track_and_a_link_are_left_alone(site: CopiedFleet) -> None:
    site.write({"tools/untracked.py": lines(f"{OLD} AssayError")})
    (site.root / "tools/link.py").symlink_to("site.py")
    site.git("add", "tools/link.py")
    assert {change.path for change in site.plan({}).changes} == {OURS, OWN, "suites/a.py"}
