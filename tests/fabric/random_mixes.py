"""Random mixes of everything that befalls a fabric: several deeds, which may touch the same devices and cables."""

from dataclasses import replace
from random import Random

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import RATE, as_built, fat_tree, in_reach, renamed


class RandomMix:
    """A small fabric of two tiers or three, after one to five deeds."""

    def __init__(self, seed):
        self.rng = Random(seed)
        deep = self.rng.random() < 0.5
        sizes = [self.rng.randint(*bounds) for bounds in ((1, 2), (2, 4), (1, 4), (1, 3), (1, 3))]
        self.plan = fat_tree(*sizes, pods=2 if deep else 1, cores=self.rng.randint(1, 3) if deep else 0)
        self.cables, self.extra, self.done = as_built(self.plan), [], []
        self.units, self.guids, self.said = {}, list(self.plan.devices), {}
        for guid, device in self.plan.devices.items():
            self.units.setdefault((device.kind, device.node or device.name), []).append(guid)
        deeds = [self.renew, self.exchange, self.move_in, self.die, self.lose, self.permute, self.misplug, self.slow]
        deeds += [self.rename, self.reseat]
        for _ in range(self.rng.randint(1, 5)):
            deed = self.rng.choice([*deeds, self.join])
            self.done.append(deed.__name__)
            deed()
        self.cables = self.one_a_port()

    def pick(self, many=1):
        """The GUIDs of up to so many nodes, or switches."""
        kind = self.rng.choice(["hca", "switch"])
        known = [guids for (its, _), guids in self.units.items() if its == kind]
        return [(kind, guids) for guids in self.rng.sample(known, min(many, len(known)))]

    def new(self, kind, guid=""):
        """A new device in the place of another. It announces that one's name, or that of any other."""
        names = ["new", *(self.plan.devices[each].description for each in (guid, self.rng.choice(self.guids)) if each)]
        device = DiscoveredDevice(f"0xe{len(self.extra) + 1:015x}", kind, 64, self.rng.choice(names))
        self.extra.append(device)
        return device.guid

    def renew(self):
        """All of a unit's devices, or one of them, have new GUIDs."""
        ((kind, guids),) = self.pick()
        some = guids if self.rng.random() < 0.6 else [self.rng.choice(guids)]
        self.cables = renamed(self.cables, {guid: self.new(kind, guid) for guid in some})

    def exchange(self):
        """Two or three units in each other's place, perhaps only some of their adapters."""
        units = [guids for _, guids in self.pick(self.rng.choice([2, 2, 3]))]
        some = self.rng.random() < 0.3
        pairs = [pair for a, b in zip(units, [*units[1:], units[0]], strict=True) for pair in zip(a, b, strict=False)]
        self.cables = renamed(self.cables, dict(pair for pair in pairs if not some or self.rng.random() < 0.6))

    def move_in(self):
        """A known unit in the slot of another, which is gone; a new unit in its own slot, or nothing."""
        units = self.pick(2)
        if len(units) == 2:
            (kind, ours), (_, slot) = units
            there = dict(zip(slot, ours, strict=False))
            if self.rng.random() < 0.5:
                there |= {guid: self.new(kind, guid) for guid in ours}
            else:
                self.remove(ours)
            self.cables = renamed(self.cables, there)

    def die(self):
        self.remove(self.pick()[0][1])

    def remove(self, guids):
        self.cables = [one for one in self.cables if not {one.a.guid, one.b.guid} & set(guids)]

    def some_cables(self, many):
        return self.rng.sample(self.cables, min(len(self.cables), self.rng.randint(1, many)))

    def lose(self):
        for cable in self.some_cables(4):
            self.cables.remove(cable)

    def permute(self):
        ring = self.some_cables(4)
        for cable, following in zip(ring, [*ring[1:], *ring[:1]], strict=True):
            self.cables[self.cables.index(cable)] = cable._replace(b=following.b)

    def misplug(self):
        for cable in self.some_cables(1):
            to = self.rng.choice([guids[0] for (kind, _), guids in self.units.items() if kind == "switch"])
            self.cables[self.cables.index(cable)] = cable._replace(b=PortId(to, self.rng.randint(50, 63)))

    def slow(self):
        for cable in self.some_cables(3):
            self.cables[self.cables.index(cable)] = cable._replace(rate=self.rng.choice(["4xHDR", "1xNDR"]))

    def join(self):
        """A device that the design lacks."""
        guid, to = self.new("hca"), self.rng.choice([g[0] for (kind, _), g in self.units.items() if kind == "switch"])
        for port in range(1, self.rng.randint(2, 4)):
            self.cables.append(DiscoveredCable(PortId(guid, port), PortId(to, 40 + port), RATE))

    def rename(self):
        """Devices of two units announce each other's names."""
        (_, ours), *others = self.pick(2)
        for _, theirs in others:
            for one, other in zip(ours, theirs, strict=False):
                names = [self.plan.devices[guid].description for guid in (one, other)]
                self.said |= dict(zip((other, one), names, strict=True))

    def reseat(self):
        """Some adapters of two nodes changed places, and announce the nodes where they are."""
        nodes = [guids for (kind, _), guids in self.units.items() if kind == "hca"]
        ours, theirs = self.rng.sample(nodes, 2) if len(nodes) > 1 else (nodes[0], nodes[0])
        some = [pair for pair in zip(ours, theirs, strict=False) if self.rng.random() < 0.6]
        moved = dict(pair for a, b in some for pair in ((a, b), (b, a)))
        self.cables = renamed(self.cables, moved)
        self.said |= {guid: self.plan.devices[place].description for guid, place in moved.items()}

    def seen(self):
        """What is discovered of it."""
        found = in_reach(self.plan, self.cables, self.extra)
        said = {
            guid: one._replace(description=self.said.get(guid, one.description)) for guid, one in found.devices.items()
        }
        return replace(found, devices=said)

    def one_a_port(self):
        used, kept = set(), []
        for cable in self.cables:
            if cable.a != cable.b and not used & {cable.a, cable.b}:
                used |= {cable.a, cable.b}
                kept.append(cable)
        return kept
