"""Finds the home that a command works on: the fleet's, `.assay/`, or its lab's, `.assay-lab/`. They share nothing.

A home holds a ledger, evidence, tickets, keys and reports. A person chooses it: by `--context`, by $ASSAY_CONTEXT, or
for the whole clone by `assay context`, which writes `.assay-context`. Nothing chosen is the fleet. If the lab is
chosen and does not answer, nothing falls back to real machines.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from assay.model.errors import AssayError
from assay.model.ledger_entry import Context

if TYPE_CHECKING:  # loads pydantic
    from assay.model.fleet import Fleet

CONTEXT_VARIABLE = "ASSAY_CONTEXT"
CHOICE_FILE = ".assay-context"
FOLDERS: dict[Context, str] = {"fleet": ".assay", "lab": ".assay-lab"}


@dataclass(frozen=True)
class Home:
    """The home of the fleet repository at `root` in one context."""

    root: Path
    context: Context

    @property
    def is_lab(self) -> bool:
        """Whether this is the lab's home."""
        return self.context == "lab"

    @property
    def folder(self) -> Path:
        """The folder of ledger, evidence, tickets and keys."""
        return self.root / FOLDERS[self.context]

    @property
    def reports(self) -> Path:
        """The folder of runs and reports. The lab's are in its own home."""
        return self.folder / "reports" if self.is_lab else self.root / "reports"

    @property
    def world(self) -> Path:
        """The folder of the virtual machines, in the lab's home whatever is chosen."""
        return self.root / FOLDERS["lab"] / "world"

    @property
    def overlays(self) -> tuple[Path, ...] | None:
        """The inventory files that lie over the repository's own: the lab's, none if it is down; None for the fleet.

        With the lab chosen, what no such file covers has no address: see `InventoryDraft`.
        """
        if not self.is_lab:
            return None
        return (self.world / "inventory.yml",) if self.answers else ()

    @property
    def answers(self) -> bool:
        """Whether what is chosen can be reached, as far as this machine knows: a lab may be down, or up by half."""
        return not self.is_lab or ((self.world / "inventory.yml").exists() and bool(find_lab_pid(self.world)))

    def require_answer(self) -> None:
        """Raise AssayError if the lab is chosen and does not answer: no command falls back to real machines."""
        if not self.answers:
            raise AssayError(
                "the lab is chosen, and it is down",
                where=str(self.world),
                fix="run: assay lab up; or, for the real machines: assay context fleet",
            )

    def require_fleet(self, reason: str) -> None:
        """Raise AssayError if the lab is chosen: a command would leave it, for this reason, to the real one."""
        if self.is_lab:
            raise AssayError(
                f"the lab is chosen, and {reason}",
                where=str(self.folder),
                fix="for the real fleet: assay context fleet",
            )

    @property
    def environment(self) -> dict[str, str]:
        """What a child process needs to work on the same home, whatever a person chooses meanwhile."""
        return {CONTEXT_VARIABLE: self.context}


def find_home(root: Path, context: str = "") -> Home:
    """Return the home of the repository at `root` in `context`, "" for what the environment or the clone chose.

    Raises AssayError for a context that there is not, and for a choice that cannot be read.
    """
    chosen, where = context, "--context"
    if not chosen:
        chosen, where = os.environ.get(CONTEXT_VARIABLE, ""), f"${CONTEXT_VARIABLE}"
    if not chosen:
        chosen, where = _read_choice(root), str(root / CHOICE_FILE)
    if chosen not in get_args(Context):
        raise AssayError(f"there is no context {chosen!r}", where=where, fix="choose fleet or lab")
    return Home(root, cast(Context, chosen))


def find_home_of(fleet: Fleet) -> Home:
    """Return the home that a fleet was loaded for."""
    return Home(fleet.root, "lab" if fleet.is_lab else "fleet")


def require_repository(root: Path) -> None:
    """Raise AssayError if a folder is no fleet repository, before a command makes or reads anything there."""
    if not (root / "inventory").is_dir():
        fix = "go to the root of one, or name it: --fleet DIR; to make one: assay init DIR"
        raise AssayError("this is no fleet repository: it has no inventory/", where=str(root.resolve()), fix=fix)


def choose_context(root: Path, context: Context) -> None:
    """Choose the context of all commands in this clone that are not told another one.

    Raises AssayError if this is no fleet repository, and OSError.
    """
    require_repository(root)
    scratch = root / f"{CHOICE_FILE}.new"
    scratch.write_text(context + "\n")
    scratch.replace(root / CHOICE_FILE)


def find_lab_pid(world: Path) -> int:
    """Return the process id of the lab whose world this is, 0 if it is down."""
    try:
        pid = int(json.loads((world / "lab.json").read_text())["pid"])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return pid if str(world.resolve()).encode() in command else 0


def _read_choice(root: Path) -> str:
    try:
        return (root / CHOICE_FILE).read_text().strip()
    except FileNotFoundError:
        return "fleet"
    except (OSError, ValueError) as error:
        raise AssayError(f"the chosen context cannot be read: {error}", where=str(root / CHOICE_FILE)) from error
