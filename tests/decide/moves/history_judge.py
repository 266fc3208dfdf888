"""Says what no pass may have done, from the ledger's lines and the raw outcomes alone.

The judge goes by the ledger's order and by boots. It shares no code with what it judges.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

REPAIRED = {"effect.verified", "certified", "part.replaced"}
LADDER_RESETS = {"certified", "part.replaced"}
RESTARTS = {"reboot", "powercycle"}
REPAIRS = {*RESTARTS, "zap"}
DISTURBING = {*REPAIRS, "drain-now"}
OVER = "what it waited to answer is over"


def rule_name(body):
    return body["rule"].rpartition(" ")[2]


def holds_for_breaker(body):
    """Whether a decision only cordons a node because the breaker holds back its answer."""
    return rule_name(body) == "held-back" and body["because"][0]["kind"] == "breaker"


class Judge:
    """Reads each entry once, and keeps them by the machine that has the name now."""

    def __init__(self, paper):
        self.paper, self.policy = paper, paper.policy
        self.machines, self.lines, self.read = {}, {}, 0
        self.names, self.replaced = set(), set()

    def read_on(self):
        """Read the new entries. A machine takes its lines along to a new name; another serial number begins anew."""
        for entry in list(self.paper.log.values())[self.read :] if self.read < len(self.paper.log) else ():
            if entry.kind == "node.enrolled":
                if entry.node in self.names:  # then the newest outcomes of this name are of another machine
                    self.replaced.add(entry.id)
                self.names.add(entry.node)
                self.lines[entry.node] = self.machines[entry.body.get("serial", "")] = [entry]
            elif entry.kind == "node.renamed":
                self.lines[entry.node] = self.machines[entry.body["serial"]]
            elif entry.kind == "node.left":
                self.lines.pop(entry.node, None)
            elif entry.node in self.lines:
                self.lines[entry.node].append(entry)
        self.read = len(self.paper.log)

    def of(self, name):
        self.read_on()
        return self.lines[name]

    def repairs(self, entry):
        effect = self.paper.log.get(entry.body.get("effect", ""))
        return entry.kind in REPAIRED and (effect is None or effect.body["action"] in REPAIRS)

    def repaired(self, name):
        """Return the number of the last repair, or of the entry by which the machine replaced another; 0 for none."""
        numbers = [one.seq for one in self.of(name) if one.id in self.replaced or self.repairs(one)]
        return max(numbers, default=0)

    def restarted_into(self, name, until):
        """Return the boot that a verified restart read back in the stay before a decision, "" for none."""
        found = stay = ""
        for entry in self.of(name):
            if entry.kind == "transition" and entry.body["decision"] == until:
                break
            if entry.kind == "transition":
                found, stay = "", entry.body["decision"]
            elif entry.kind == "effect.verified":
                asked = self.paper.log[entry.body["effect"]].body
                if asked["action"] in RESTARTS and asked["decision"] == stay:
                    found = entry.body["facts"].get("boot_id", "") or found
        return found

    def ended_boots(self, name):
        """Return the boots that the ledger knew before a verified restart, and that are over since."""
        known, ended = set(), set()
        for entry in self.of(name):
            if entry.kind == "fault":
                known.add(entry.body["marks"]["kernel"].rpartition(":")[0])
            elif entry.kind == "effect.intent":
                known |= {entry.body["before"].get("boot_id", "")} - {""}
            elif entry.kind == "effect.verified" and self.paper.log[entry.body["effect"]].body["action"] in RESTARTS:
                ended |= known - {entry.body["facts"].get("boot_id", "")}
        return ended

    def proved(self, decision, at):
        """Whether raw outcomes let a node serve: a fresh pass of each phase, of one boot, read after its repair."""
        name, state = decision.node, decision.from_state
        repaired, boots = self.repaired(name), {self.restarted_into(name, decision.id)} - {""}
        for wanted in self.policy.states[state].requires:
            if wanted.phase == "fabric":  # no node on paper has one, so nothing of it is due
                continue
            judged = [one for one in self.paper.outcomes[name].values() if wanted.phase in one.outcome.phases]
            if len(judged) != 1 or judged[0].outcome.verdict != "pass":
                return False
            age = at - datetime.fromisoformat(judged[0].outcome.evidence_at)
            # Clocks say only how old evidence is. Whether a repair came after it, only the ledger's order says.
            if abs(age) > timedelta(hours=wanted.fresh_hours) or judged[0].outcome.basis.after_entry < repaired:
                return False
            boots.add(judged[0].outcome.basis.boot_id)
        return bool(self.policy.states[state].requires) and len(boots) <= 1

    def later_faults(self, name, state):
        """Return the open faults of a node whose entry follows the evidence that its state requires."""
        wanted = {requirement.phase for requirement in self.policy.states[state].requires}
        judged = [one.outcome.basis for one in self.paper.outcomes[name].values() if wanted & set(one.outcome.phases)]
        least = min((basis.after_entry or 0 for basis in judged), default=0)
        last = {}
        for entry in self.of(name):
            if entry.kind == "fault":
                last[entry.body["fault"]] = entry
            elif entry.kind == "fault.cleared" and entry.body.get("seen_up_to", 0) in (0, _seq(last, entry)):
                last.pop(entry.body["fault"], None)
        least = max(least, self.repaired(name)) if last else least
        told = [one for one in last.values() if one.body["severity"] != "informational" and one.seq > least]
        ended = self.ended_boots(name) if told else set()
        return [entry for entry in told if entry.body["marks"]["kernel"].rpartition(":")[0] not in ended]

    def out(self):
        """Return the nodes that were taken out of service and are not back, or wait cordoned for their own reason."""
        return {name for name in self.paper.nodes if self._is_out(name)}

    def _is_out(self, name):
        taken, waits = False, ""
        for entry in self.of(name):
            if entry.kind == "transition":
                old, new = (self.policy.states[entry.body[end]] for end in ("from", "to"))
                if new.in_service or new.final or self.is_order(entry):
                    taken = False
                elif old.in_service:
                    taken = True
                waits = ""
            elif entry.kind == "decision" and entry.body["timing"] == "pending":
                rule = rule_name(entry.body)
                waits = "" if rule.startswith("racks.") or rule == "person" else entry.id
            elif entry.kind == "decision.withdrawn" and entry.body["decision"] == waits:
                waits = ""
        return taken or bool(waits)

    def is_order(self, transition):
        """Whether a person ordered the move."""
        decision = self.paper.log.get(transition.body["decision"])
        return decision is None or rule_name(decision.body) == "person"

    def restarts(self, since):
        moves = [entry for name in self.paper.nodes for entry in self.of(name) if entry.kind == "transition"]
        recent = [entry for entry in moves if datetime.fromisoformat(entry.at) > since]
        return [one for one in recent if RESTARTS & set(self.policy.states[one.body["to"]].entry)]

    def cordoned_racks(self):
        found = defaultdict(set)
        for name in self.trays():
            pending = self.paper.story(name).pending
            if pending and pending.rule.startswith("racks."):
                found[self.paper.nodes[name].rack].add(name)
        return found

    def trays(self):
        return [node.name for node in self.paper.nodes.values() if node.spec == "tray"]

    def held(self, only_breaker=False):
        """Return the nodes that are only cordoned while their answer is held back: by the breaker, or by anything."""
        pending = {name: self.paper.story(name).pending for name in self.paper.nodes}
        bodies = {name: self.paper.log[one.decision].body for name, one in pending.items() if one}
        return {
            name
            for name, body in bodies.items()
            if (holds_for_breaker(body) if only_breaker else rule_name(body) == "held-back")
        }

    def openings(self, name, now):
        """Return how often a node was opened within a week because its faults went away, since a person last reset it.

        Each opening counts at the time when its fault went away, as in the policy's window.
        """
        last, gone, found = {}, {}, []
        for entry in self.of(name):
            if entry.kind == "fault":
                last[entry.body["fault"]] = _part(entry.body)
            elif entry.kind == "fault.cleared" and entry.body["fault"] in last:
                gone[last[entry.body["fault"]]] = datetime.fromisoformat(entry.at)
            elif entry.kind in LADDER_RESETS:
                found = []
            elif entry.kind == "decision.withdrawn" and entry.body["reason"] == OVER:
                because = self.paper.log[entry.body["decision"]].body["because"]
                causes = [last[one["id"]] for one in because if one["id"] in last]
                ends = [gone[cause] for cause in causes if cause in gone]  # none: people replaced the part
                found += [max(ends)] if ends else []
        return sum(at > now - timedelta(hours=168) for at in found)

    def can_be_wave(self, pool):
        """Whether enough nodes of a pool show faults that entered the ledger after a person cleared its breaker."""
        fresh = 0
        for name, node in self.paper.nodes.items():
            kinds = [entry.kind for entry in self.of(name)]
            cleared = max((at for at, kind in enumerate(kinds) if kind == "breaker.cleared"), default=0)
            fresh += node.pool == pool and "fault" in kinds[cleared:]
        return fresh >= self.policy.breaker.min_nodes


def _seq(last, cleared):
    known = last.get(cleared.body["fault"])
    return known.seq if known else 0


def _part(body):
    return body["class"], body["subject"].rpartition("/")[2]
