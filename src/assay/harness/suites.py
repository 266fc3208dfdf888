"""Takes over the functions of a fleet's suites: one pytest item per check × subject, one outcome per item."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.harness import calm
from assay.harness.asked import Names, asked
from assay.harness.beside import Beside
from assay.harness.choose import chosen, kind_of
from assay.harness.fixtures import Fixtures
from assay.harness.kept import fleet_at
from assay.harness.loop import Loop
from assay.harness.making import Making, slim_is_asked_for
from assay.harness.marks import Marks
from assay.harness.narrow import ANY, Narrow
from assay.harness.neighbours import put_together
from assay.harness.ordinary import TRIAL, Ordinary
from assay.harness.protocol import Protocol
from assay.harness.shelf import Shelf
from assay.harness.slim import Check, SlimItem
from assay.harness.subjects import Named, Subjects
from assay.harness.trial import Trial
from assay.model.errors import Trouble
from assay.model.outcome import Outcome
from assay.model.subject import Subject

if TYPE_CHECKING:  # who keeps no outcomes does not wait for what keeps them
    from assay.harness.declared import Selection
    from assay.harness.deliver import Delivery
    from assay.model.fleet import Fleet

MANY = 5000  # items, or nodes
LEDGER, JUDGED_AGAIN = "ASSAY_LEDGER", "ASSAY_JUDGED_AGAIN"
"""Where a process finds the ledger, and the run that it judges again, by environment."""


class Refusal:
    """Stands in for suites that cannot be judged: pytest ends with a usage error and nothing runs."""

    def __init__(self, trouble: Trouble) -> None:
        self._trouble = trouble

    def pytest_collection_modifyitems(self) -> None:
        """End the session. Raises UsageError, which pytest prints as one message."""
        raise pytest.UsageError(str(self._trouble))


def wake(config: pytest.Config, folder: Path, home: Path) -> Suites | Refusal:
    """Return the hooks for the suites in `folder`, which judge the fleet at `home`."""
    try:
        return Suites(config, folder, home)
    except Trouble as trouble:
        return Refusal(trouble)


class Suites:
    """The hooks of one session. `folder` holds the modules, `home` the fleet that they judge."""

    def __init__(self, config: pytest.Config, folder: Path, home: Path) -> None:
        self.config, self.folder, self.outcomes = config, folder, list[Outcome]()
        option = config.getoption
        self.fleet = fleet_at(home)
        selection = chosen(self.fleet, config)
        self.subjects = Subjects(selection)
        self.phases = {name for given in option("--phase") for name in given.split(",")}
        self._delivery = _delivery(config, self.fleet, selection)
        where = Path(option("--evidence") or home / ".assay" / "evidence" / "latest")
        self.shelf = self._delivery.shelf(where) if self._delivery else Shelf(where)
        self._beside = Beside(self.fleet, self._delivery, self.shelf)
        self.calm = calm.is_asked_for(config)
        told = os.environ.get
        fixtures = Fixtures(self.fleet, option("--ledger") or told(LEDGER, ""), TRIAL, told(JUDGED_AGAIN, ""))
        self._narrow, self._making = Narrow(config), Making(fixtures, slim=slim_is_asked_for(config))
        self._subjects: dict[tuple[Path, str], list[str]] = {}
        self._asked: dict[Path, Names | None] = {}
        config.pluginmanager.register(fixtures, "assay-fixtures")
        protocol = Protocol(config, self.shelf, self.take)
        config.pluginmanager.register(protocol, "assay-protocol")
        config.pluginmanager.register(Loop(protocol), "assay-loop")
        config.pluginmanager.register(Ordinary(config, self.fleet, self.trial, self.take), "assay-ordinary")
        if self.calm:
            calm.hush(config)

    def owns(self, node: pytest.Item | pytest.Collector) -> bool:
        """Return whether a test or module belongs to this fleet's suites."""
        return self.folder in node.path.parents

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item] | None:
        """Make slim items, leave ordinary ones to pytest, and none where nothing is selected for a check.

        Neither the evidence nor the fixtures of what is not selected are touched.
        """
        if not self.owns(collector) or not collector.istestfunction(obj, name):
            return None
        check = self._making.check(self._check_id(collector, name), obj, collector)
        if self.phases and not self.phases & set(check.marks.phases):
            return []
        kind = kind_of(obj)
        if not kind:
            return None
        names = self._asked_of(collector.path) if isinstance(collector, pytest.Module) else None
        if names is not None and name not in names:
            return []
        judges = self._making.only_judges(check, collector)
        subjects = self._selected(check, collector, kind, names) if judges else self.subjects.of(kind)
        if self._delivery is not None:
            subjects = self._delivery.due(check.id, subjects)
        if subjects and judges and self._making.slim:
            return self._making.items(check, collector, subjects)
        self._subjects[collector.path, name] = [one.id for one in subjects]
        return None if subjects else []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat an ordinary check over the selected subjects of the kind that its arguments ask for."""
        if self.owns(metafunc.definition) and kind_of(metafunc.function):
            subjects = self._subjects[metafunc.definition.path, metafunc.definition.name]
            metafunc.parametrize("subject", subjects, ids=subjects, indirect=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put slim items first, those of one node or rack together, so that its evidence is read once."""
        if self._delivery is not None:
            items[:] = [item for item in items if isinstance(item, SlimItem) or not self._was_judged(item)]
        put_together(items, self.fleet)
        if len(items) >= MANY or len(self.fleet.nodes) >= MANY:
            gc.freeze()  # all that there is stays until the end, and need not be looked through again and again

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Write down what the user left out with -k, -m or --deselect, so that nobody misses it."""
        if self._delivery is not None:
            self._delivery.left_out(self._name(item) for item in items if self.owns(item))

    def deliver_no_more(self) -> None:
        """Put on disk what was taken, and let go of the file."""
        if self._delivery is not None:
            self._delivery.close()
            self._delivery = None

    def pytest_unconfigure(self) -> None:
        """Deliver no more."""
        self.deliver_no_more()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what did not pass, one line each."""
        if self.calm:
            calm.tell(terminalreporter, self.outcomes)

    def take(self, outcome: Outcome, trial: Trial) -> None:
        """Put beside an outcome what belongs there, deliver it, and keep it for the summary unless it passed."""
        outcome = self._beside(outcome, trial)
        if outcome.verdict != "pass":
            self.outcomes.append(outcome)
        if self._delivery is not None:
            self._delivery(outcome)

    def trial(self, item: pytest.Item) -> Trial | None:
        """Open the trial of an ordinary item, None for one that is not of these suites."""
        if not self.owns(item):
            return None
        marks, (check, subject) = Marks.of_item(item), self._name(item)
        judged = Subject.parse(subject)
        node = judged.name if judged.name in self.fleet.nodes else ""
        return Trial(check, judged, node, self.shelf, marks.phases, marks.fault, marks.active)

    def _was_judged(self, item: pytest.Item) -> bool:
        return self._delivery is not None and self.owns(item) and self._delivery.has(*self._name(item))

    def _selected(self, check: Check, module: pytest.Collector, kind: str, names: Names | None) -> list[Named]:
        """Return the subjects of a check that the ids of the command line (`names`), -m and -k leave."""
        if names is not None:
            ids = names[check.name]
            return self.subjects.of(kind) if ids is None else self.subjects.called(kind, ids)
        words = self._narrow.words(self._making.example(check, module))
        fitting = self.subjects.fitting(kind, words)
        if self._delivery is not None and words != ANY:
            kept = {one.id for one in fitting}
            self._delivery.left_out((check.id, one.id) for one in self.subjects.of(kind) if one.id not in kept)
        return fitting

    def _asked_of(self, module: Path) -> Names | None:
        """Return what the command line asks for in a module, made out once for all of its functions."""
        if module not in self._asked:
            self._asked[module] = asked(self.config, module)
        return self._asked[module]

    def _check_id(self, place: pytest.Item | pytest.Collector, name: str) -> str:
        return f"{self.folder.name}/{place.path.relative_to(self.folder).as_posix()}::{name}"

    def _name(self, item: pytest.Item) -> tuple[str, str]:
        """Return an item's check and subject."""
        if isinstance(item, SlimItem):
            return item.check.id, str(item.subject)
        callspec = getattr(item, "callspec", None)
        check = self._check_id(item, getattr(item, "originalname", None) or item.name)
        return check, callspec.params["subject"] if callspec else "fleet/all"


def _delivery(config: pytest.Config, fleet: Fleet, selection: Selection) -> Delivery | None:
    if not config.getoption("--store"):
        return None
    from assay.harness.deliver import delivery

    return delivery(config, fleet, selection.nodes)
