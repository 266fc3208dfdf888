"""What a check may ask for by argument name."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

import pytest

from assay.harness.measure import Measure
from assay.harness.parts import NodeView, PartView, RackView
from assay.harness.since import Passes, PassesBefore, SinceLastPass
from assay.harness.spec import Limits, SpecView
from assay.harness.specs import Specs
from assay.harness.trial import Trial
from assay.harness.view import View
from assay.model.fleet import Fleet

if TYPE_CHECKING:  # what looks at fabrics is read where a check asks for one
    from assay.harness.fabric_health import RailView, SwitchView
    from assay.harness.links import Fabrics, FabricView, LinkView
    from assay.harness.weeks import PortWeekView, RailWeek, Weeks, WeekView


class Fixtures:
    """The fixtures of fleet suites. Nothing is read before a check looks at it."""

    def __init__(self, fleet: Fleet, ledger: str, key: pytest.StashKey[Trial], before: str = "") -> None:
        """`before` is the run that is judged again, which knew no later passes."""
        self._fleet, self._where, self._key, self._before = fleet, ledger, key, before
        self._specs = Specs(fleet)

    @pytest.fixture
    def subject(self, request: pytest.FixtureRequest) -> str:
        """The id of what is judged, `h100-a/n0017/gpu3`."""
        return cast("str", request.param)

    @pytest.fixture
    def trial(self, request: pytest.FixtureRequest, subject: str) -> Trial:  # noqa: ARG002 — repeated over subjects
        """What this outcome will be made of."""
        return cast("Trial", request.node.stash[self._key])

    @pytest.fixture
    def node(self, trial: Trial) -> NodeView:
        """The node, or the node that the part sits in."""
        return NodeView(trial, self._specs, self._fleet.nodes[trial.subject.name])

    @pytest.fixture
    def gpu(self, trial: Trial, node: NodeView) -> PartView:
        """One declared GPU slot."""
        return node.part("gpu", trial.subject.part)

    @pytest.fixture
    def hca(self, trial: Trial, node: NodeView) -> PartView:
        """One declared InfiniBand adapter; `declared` has its rail and GUID."""
        return node.part("hca", trial.subject.part)

    @pytest.fixture
    def nic(self, trial: Trial, node: NodeView) -> PartView:
        """One declared front-end interface."""
        return node.part("nic", trial.subject.part)

    @pytest.fixture
    def nvme(self, trial: Trial, node: NodeView) -> PartView:
        """One declared NVMe drive."""
        return node.part("nvme", trial.subject.part)

    @pytest.fixture
    def psu(self, trial: Trial, node: NodeView) -> PartView:
        """One declared power supply."""
        return node.part("psu", trial.subject.part)

    @pytest.fixture
    def bmc(self, node: NodeView) -> View:
        """What the node's BMC says."""
        return node.bmc

    @pytest.fixture
    def rack(self, trial: Trial) -> RackView:
        """A rack and its nodes."""
        return RackView(trial, self._specs, trial.subject)

    @pytest.fixture
    def whole_rack(self, rack: RackView) -> RackView:
        """A rack whose nodes work as one machine (their spec has `rack`), and its nodes."""
        return rack

    @pytest.fixture
    def fabric(self, trial: Trial) -> FabricView:
        """The fabric, or the one that the node hangs on."""
        node = self._fleet.nodes.get(trial.node)
        design = str(node.variables.get("fabric", "")) if node else trial.subject.name
        from assay.harness.links import FabricView

        return FabricView(self._fabrics, trial, design)

    @pytest.fixture
    def link(self, fabric: FabricView, hca: PartView) -> LinkView:
        """The link at one InfiniBand adapter."""
        from assay.harness.links import LinkView

        return LinkView(self._fabrics, fabric, hca)

    @pytest.fixture
    def switch(self, trial: Trial, fabric: FabricView) -> SwitchView:
        """One designed switch of a fabric."""
        return fabric.switch(trial.subject.part)

    @pytest.fixture
    def rail(self, trial: Trial, fabric: FabricView) -> RailView:
        """One rail of a fabric."""
        return fabric.rail(int(trial.subject.part.removeprefix("rail-")))

    @pytest.fixture
    def fabric_week(self, trial: Trial, fabric: FabricView) -> WeekView:
        """The last week of a fabric."""
        from assay.harness.weeks import WeekView

        return WeekView(self._weeks, trial, fabric.name)

    @pytest.fixture
    def link_week(self, fabric_week: WeekView, link: LinkView) -> list[PortWeekView]:
        """Both ports of the link at one InfiniBand adapter through the last week, the adapter's first."""
        return fabric_week.of_link(link.expected)

    @pytest.fixture
    def switch_week(self, trial: Trial, fabric_week: WeekView) -> list[PortWeekView]:
        """The ports of a switch to other switches through the last week."""
        return fabric_week.of_switch(trial.subject.part)

    @pytest.fixture
    def rail_week(self, fabric_week: WeekView, rail: RailView) -> RailWeek:
        """One rail through the last week."""
        return fabric_week.rail(rail.number)

    @pytest.fixture
    def fabric_limits(self, fabric: FabricView) -> Limits:
        """The thresholds that the fabric's design sets, by name."""
        return self._specs.limits(self._fleet.designs[fabric.name])

    @pytest.fixture
    def spec(self, trial: Trial) -> SpecView:
        """The NodeSpec of the node (of a rack: of its first node)."""
        return self._specs.view(self._fleet.spec_of(self._example(trial)))

    @pytest.fixture
    def limits(self, trial: Trial) -> Limits:
        """The spec's thresholds by name."""
        return self._specs.limits(self._fleet.spec_of(self._example(trial)))

    @pytest.fixture
    def bundle(self, trial: Trial) -> SpecView:
        """The firmware that belongs on the node."""
        return self._specs.view(self._fleet.bundle_of(self._example(trial)))

    @pytest.fixture
    def profile(self, trial: Trial) -> SpecView:
        """What automation may do to the node."""
        return self._specs.view(self._fleet.profile_of(self._example(trial)))

    @pytest.fixture
    def measure(self, trial: Trial) -> Measure:
        """Write a number down and hold it to a limit."""
        return Measure(trial)

    @pytest.fixture
    def since_last_pass(self, trial: Trial) -> SinceLastPass:
        """How much a counter grew since this check last passed here."""
        return SinceLastPass(trial, lambda: self._ledger)

    @cached_property
    def _fabrics(self) -> Fabrics:
        from assay.harness.links import Fabrics

        return Fabrics(self._fleet)

    @cached_property
    def _weeks(self) -> Weeks:
        from assay.harness.weeks import Weeks

        return Weeks(self._fabrics)

    @cached_property
    def _ledger(self) -> Passes | None:
        if not self._where:
            return None
        from assay.ledger.store import Ledger

        ledger = Ledger.open(self._where)
        return PassesBefore(ledger, self._before) if self._before else ledger

    def _example(self, trial: Trial) -> str:
        """Return the trial's node, or the first of its rack."""
        if trial.node:
            return trial.node
        return self._specs.rack(trial.subject.scope, trial.subject.name.removeprefix("rack-"))[0].name
