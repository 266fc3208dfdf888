"""The shapes of what `assay fabric` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from assay.fabric.weekly.findings import PortFinding
from assay.model.facts import fact, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.fabric.compare.discrepancy import DiscrepancyKind
    from assay.fabric.compare.repair import Severity
    from assay.model.specs.fabric.cable import CableEnd


@fact
class CablePairAnswer:
    """A cable as designed and as seen."""

    expected: tuple[CableEnd, ...] | None
    """Both ends as designed; null if no cable is designed there."""
    observed: tuple[CableEnd, ...] | None
    """Both ends as seen; null if no cable was seen there."""


@fact
class DiscrepancyAnswer:
    """One thing that is wrong with the cabling."""

    kind: DiscrepancyKind
    """What kind of mistake it is."""
    summary: str
    """The mistake in one line."""
    nodes: Sequence[str]
    """The nodes that it affects."""
    cables: Sequence[CablePairAnswer]
    """The cables."""
    device: str = shown(omit=True, default="")
    """The device; missing if it is about a cable."""
    corrections: tuple[str, ...] = shown(omit=True, default=())
    """What to do, the likelier one first; several are alternatives. Missing if nothing is known."""
    likelier: str = shown(omit=True, default="")
    """The first correction, if it is known why it is likelier than the others; else missing."""
    because: str = shown(omit=True, default="")
    """Why it is likelier."""
    box: str = shown(omit=True, default="")
    """The chassis that a dead chip, or a link without a plug, is in; else missing."""
    module: str = shown(omit=True, default="")
    """The card in that chassis; missing without one."""
    plane: int = shown(omit=True, default=0)
    """The plane of that chassis; missing without one."""
    costs: str = shown(omit=True, default="")
    """What the fabric lacks until the repair, in words; missing if it lacks nothing."""
    beside: tuple[str, ...] = shown(omit=True, default=())
    """The other links that go down when the plugs are pulled; missing if there are none."""
    cut_off: tuple[tuple[CableEnd, ...], ...] = shown(omit=True, default=())
    """The designed cables of which nothing is known, since the discovery cannot reach them past it; else missing."""


@fact
class CablingFault:
    """Mistakes that have one cause together."""

    title: str
    """The cause in one line."""
    severity: Severity
    """How much it costs."""
    gbps: int
    """The bandwidth that is lost, in Gb/s."""
    nodes: Sequence[str]
    """The nodes that it affects."""
    members: Sequence[int]
    """The mistakes, by their place in `discrepancies`, from 0."""


@fact
class FabricComparisonAnswer:
    """How the fabric differs from its design, as the smallest set of mistakes that explains it."""

    design: str
    """The FabricDesign."""
    verdict: Literal["match", "mismatch", "partial"]
    """Whether all is as designed. Partial: a part could not be told. The exit code is 0, 1 or 2."""
    summary: str
    """The comparison in one line."""
    expected: int
    """How many cables are designed."""
    found: int
    """How many cables were found."""
    matching: int
    """How many cables are as designed."""
    discrepancies: Sequence[DiscrepancyAnswer]
    """What is wrong."""
    faults: Sequence[CablingFault]
    """The same, put together by cause, the most costly first."""
    problems: Sequence[str]
    """What could not be told, and why."""
    notes: Sequence[str]
    """What else was seen, such as devices that are not of this fabric."""
    unknown: Sequence[tuple[CableEnd, ...]]
    """The designed cables of which nothing can be told, each as a pair of ends."""


@fact
class ImpactAnswer:
    """What the fabric loses without a node, a switch, or the cable at a port."""

    lost: str
    """The element."""
    lines: tuple[str, ...]
    """The loss in words."""
    cut_off: tuple[str, ...]
    """The nodes and switches without a path to the rest."""


@fact
class RankedPortAnswer:
    """A port that stands out."""

    port: CableEnd
    """The port."""
    far: CableEnd
    """The other end of its cable."""
    rail: int | None
    """The rail; null if the design has none for it."""
    serial: str
    """The serial number of the cable or transceiver; "" if it is not known."""
    findings: Sequence[PortFinding]
    """Why it stands out."""


@fact
class ChangedPort:
    """A port that stands out in one of two weeks."""

    port: CableEnd
    """The port."""
    says: Sequence[str]
    """Why, in words."""


@fact
class WeekChanges:
    """What changed since the week before."""

    since: str
    """The end of the week before: ISO 8601 with the offset of UTC."""
    new: Sequence[ChangedPort]
    """The ports that stand out only now."""
    gone: Sequence[ChangedPort]
    """The ports that stood out only then."""
    staying: int
    """How many ports stand out as before."""
    errors_before: int
    """How many errors there were in the week before."""


@fact
class FabricWeekAnswer:
    """What a week of scans says of the ports of a fabric."""

    fabric: str
    """The FabricDesign."""
    verdict: Literal["look", "unknown", "well"]
    """Whether some ports stand out (look), else something could not be judged (unknown), or all is well."""
    start: str
    """The beginning of the week: ISO 8601 with the offset of UTC."""
    end: str
    """The end of the week: ISO 8601 with the offset of UTC."""
    scans: int
    """How many scans there were."""
    ports: int
    """How many ports were judged."""
    errors: int
    """How many errors they counted, all together."""
    manager_moves: Sequence[Sequence[str]]
    """When another subnet manager answered: the time (ISO 8601), and the GUIDs of the one before and the new one."""
    changes: WeekChanges | None
    """What changed since the week before; null if that was not evaluated."""
    worst: Sequence[RankedPortAnswer]
    """The ports that stand out, the worst first; with any, the exit code is 1."""
    unjudged: Sequence[str]
    """What was not judged, such as a reading that too few scans have; with any, the exit code is 1."""
    stuck: Sequence[str]
    """The ports with a counter that stood at its maximum, so that it counted nothing, and what to do."""
    unseen: Sequence[str]
    """What could not be judged, and why."""
    discovery: Sequence[str]
    """What the scans say besides."""
