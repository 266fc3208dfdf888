"""Which sittings prove a fleet's checks: each is judged on the good recordings, and on each of its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from assay.fleet.reads import read_checks
from assay.fleet.tree import Folder
from assay.harness.declared import Selection, checks
from assay.harness.proof.sitting import Laid, Sitting, Wanted
from assay.harness.recordings import MustFail, changed, must_fail, recording
from assay.harness.specs import slots
from assay.model.checks import Check
from assay.model.errors import Trouble
from assay.model.evidence import read
from assay.model.fleet import Fleet
from assay.model.nodespec import NodeSpec

Rests = Literal["node", "whole_rack", "fabric", "week"]
"""What evidence a check rests on."""
ARGUMENTS: tuple[tuple[Rests, frozenset[str]], ...] = (
    ("week", frozenset({"link_week", "switch_week", "rail_week", "fabric_week"})),
    ("fabric", frozenset({"link", "switch", "rail", "fabric"})),
    ("whole_rack", frozenset({"whole_rack"})),
)
MANY = 40  # cases of one sitting
POOL = "proof"
Cases = list[tuple[Check, MustFail]]


class Preparation:
    """Everything that is to be judged. `unproved` says of a check why it cannot be; checks without a case too."""

    def __init__(self, fleet: Fleet, wanted: Iterable[str]) -> None:
        self.fleet, self.suites = fleet, fleet.root / "suites"
        self._folder = self.suites / "recordings"
        self._cases = must_fail(self._folder)
        chosen = set(wanted)
        self.checks = [check for check in checks(fleet) if check.id in chosen]
        self.unproved = {check.id: "no recording must make it fail" for check in self.checks if not self._of(check)}
        self._reads = read_checks(Folder(fleet.root))

    @property
    def strangers(self) -> list[str]:
        """The checks that recordings are about and no catalogue declares."""
        return sorted(self._cases.keys() - {check.id for check in checks(self.fleet)})

    def sittings(self) -> list[Sitting]:
        """Return every sitting. What cannot be laid out stands in `unproved` afterwards."""
        return [
            *self._of_nodes(self._resting_on("node")),
            *self._of_racks(self._resting_on("whole_rack")),
            *self._of_fabrics(self._resting_on("fabric"), "fabric"),
            *self._of_fabrics(self._resting_on("week"), "week"),
        ]

    def _of(self, check: Check) -> list[MustFail]:
        return self._cases.get(check.id, [])

    def _resting_on(self, what: Rests) -> list[Check]:
        return [check for check in self.checks if self._rests_on(check) == what]

    def _rests_on(self, check: Check) -> Rests:
        reads = self._reads.get(check.id)
        asked = reads.fixtures if reads else frozenset()
        return next((what for what, names in ARGUMENTS if names & asked), "node")

    def _cases_of(self, some: list[Check], among: list[str]) -> Iterator[tuple[Check, MustFail, str]]:
        """Yield each case with the recording that it changes: the one that it names, else the first that it fits."""
        for check in some:
            for case in self._of(check):
                named = [case.recording] if case.recording else among
                found = [name for name in named if name in among and self._fits(check, name, case)]
                if found:
                    yield check, case, found[0]

    def _fits(self, check: Check, name: str, case: MustFail) -> bool:
        try:
            changed(self._recorded(name), case)
        except Trouble as trouble:
            self.unproved[check.id] = f"{case.name}: {trouble}"
            return False
        self.unproved.pop(check.id, None)
        return True

    def _recorded(self, name: str) -> dict[str, Any]:
        if name not in self._documents:
            self._documents[name] = recording(self._folder, name)
        return self._documents[name]

    @cached_property
    def _documents(self) -> dict[str, dict[str, Any]]:
        return {}

    def _specs(self, *, racks: bool) -> list[NodeSpec]:
        """Return the node specs of which there is a recording."""
        known = sorted(self.fleet.node_specs.items())
        found = [spec for name, spec in known if (self._folder / f"{name}.json").is_file()]
        return [spec for spec in found if (spec.rack is not None) == racks]

    def _lacking(self, some: list[Check], what: str) -> None:
        for check in some:
            self.unproved.setdefault(check.id, f"there is no good recording {what}: python -m assay.harness.record")

    def _of_nodes(self, some: list[Check]) -> Iterator[Sitting]:
        """Yield the good nodes, each judged whole, then the cases, a node and its neighbour each."""
        specs = self._specs(racks=False)
        if some and not specs:
            self._lacking(some, "of a node spec")
            return
        for spec in specs if some else ():
            yield self._node_sitting(some, spec, [])
        by_spec: dict[str, Cases] = {}
        for check, case, name in self._cases_of(some, [spec.name for spec in specs]):
            by_spec.setdefault(name, []).append((check, case))
        for name, cases in by_spec.items():
            for first in range(0, len(cases), MANY):
                yield self._node_sitting([], self.fleet.node_specs[name], cases[first : first + MANY])

    def _node_sitting(self, well: list[Check], spec: NodeSpec, cases: Cases) -> Sitting:
        named: dict[str, MustFail | None] = {f"n{number:03}": case for number, (_, case) in enumerate(cases)}
        names = named or {"well": None}
        hosts: dict[str, Any] = {}
        laid: list[Laid] = []
        for name, case in names.items():
            for host, change in ((name, case), (f"{name}-beside", None)):
                hosts[host] = self._host(spec, rack=name, u=4)
                laid.append(Laid(host, spec.name, change))
        wanted = [
            *(Wanted(check.id, subject) for check in well for subject in _subjects(spec, check, "well")),
            *(_wanted(check, case, name) for name, (check, case) in zip(names, cases, strict=False)),
        ]
        return Sitting(self.suites, self.fleet.root, tuple(laid), tuple(wanted), self._pool(spec, hosts))

    def _of_racks(self, some: list[Check]) -> Iterator[Sitting]:
        """Yield, for each kind of whole rack, a good rack and one more for each case."""
        specs = self._specs(racks=True)
        if some and not specs:
            self._lacking(some, "of a node spec with a whole `rack`")
            return
        found = list(self._cases_of(some, [spec.name for spec in specs]))
        for spec in specs if some else ():
            cases = [(check, case) for check, case, name in found if name == spec.name]
            yield self._rack_sitting(some, spec, cases)

    def _rack_sitting(self, well: list[Check], spec: NodeSpec, cases: Cases) -> Sitting:
        trays = spec.rack.nodes if spec.rack else 1
        racks: dict[str, MustFail | None] = {"well": None, **{f"c{n}": case for n, (_, case) in enumerate(cases)}}
        hosts: dict[str, Any] = {}
        laid: list[Laid] = []
        for rack, case in racks.items():
            for tray in range(trays):
                hosts[f"{rack}-{tray:02}"] = self._host(spec, rack=rack, u=tray + 1)
                laid.append(Laid(f"{rack}-{tray:02}", spec.name, case if tray == trays // 2 else None))
        wanted = [
            *(Wanted(check.id, f"{POOL}/rack-well") for check in well),
            *(
                Wanted(check.id, f"{POOL}/rack-c{n}", case.name, case.verdict, case.says)
                for n, (check, case) in enumerate(cases)
            ),
        ]
        return Sitting(self.suites, self.fleet.root, tuple(laid), tuple(wanted), self._pool(spec, hosts))

    def _of_fabrics(self, some: list[Check], kind: str) -> Iterator[Sitting]:
        """Yield, for each design, the good scan (or week) judged whole, and a sitting for each case."""
        names = {f"{kind}-{name}": name for name in self.fleet.designs}
        recorded = [name for name in names if (self._folder / f"{name}.json").is_file()]
        if some and not recorded:
            self._lacking(some, f"of a fabric ({kind}-DESIGN.json)")
            return
        everything = Selection(self.fleet, tuple(self.fleet.nodes))
        for name in recorded if some else ():
            wanted = [Wanted(one.id, str(subject)) for one in some for subject, _ in everything.subjects(one.subject)]
            yield Sitting(self.suites, self.fleet.root, (Laid(name, name),), tuple(wanted))
        for check, case, name in self._cases_of(some, recorded):
            subject = self._fabric_subject(check, case, names[name])
            wanted_one = Wanted(check.id, subject, case.name, case.verdict, case.says)
            yield Sitting(self.suites, self.fleet.root, (Laid(name, name, case),), (wanted_one,))

    def _fabric_subject(self, check: Check, case: MustFail, design: str) -> str:
        if not case.subject:
            return f"fabric/{design}"
        node = self.fleet.nodes.get(case.subject.partition("/")[0])
        return f"{'fabric' if check.subject in ('switch', 'rail') or node is None else node.pool}/{case.subject}"

    def _host(self, spec: NodeSpec, *, rack: str, u: int) -> dict[str, Any]:
        """Return a host whose identity is that of the recorded node."""
        channels = self._recorded(spec.name)["channels"]
        serial = read(channels, ("probe", "host", "serial")).value
        guids = [read(channels, ("probe", "hca", hca.name, "guid")).value for hca in spec.hcas]
        told = {"hca_guids": guids} if guids and all(guids) else {}
        return {"rack": rack, "u": u, "serial_number": str(serial or "recorded"), "bmc_address": "192.0.2.1", **told}

    def _pool(self, spec: NodeSpec, hosts: Mapping[str, Any]) -> dict[str, object]:
        alike = Counter(node.profile for node in self.fleet.nodes.values() if node.spec == spec.name)
        profile = alike.most_common(1)[0][0] if alike else min(self.fleet.profiles)
        return {POOL: {"vars": {"node_spec": spec.name, "profile": profile, "site": "proof"}, "hosts": dict(hosts)}}


def _subjects(spec: NodeSpec, check: Check, node: str) -> list[str]:
    """Return a node's subjects of a check's kind."""
    if check.subject == "rack":
        return [f"{POOL}/rack-{node}"]
    if check.subject == "node":
        return [f"{POOL}/{node}"]
    return [f"{POOL}/{node}/{slot}" for slot in slots(spec, check.subject)]


def _wanted(check: Check, case: MustFail, node: str) -> Wanted:
    subject = f"{POOL}/rack-{node}" if check.subject == "rack" else "/".join(filter(None, (POOL, node, case.subject)))
    return Wanted(check.id, subject, case.name, case.verdict, case.says)
