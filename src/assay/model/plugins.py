"""Plug-ins: modules that an installed distribution adds to assay by an entry point.

Each kind of plug-in has an entry-point group. assay's own modules are in the same groups as those from outside.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from assay.model.errors import AssayError, find_missing_extra

if TYPE_CHECKING:  # loads the email package, which no command needs that uses no plug-in
    from importlib.metadata import EntryPoint

OWN_DISTRIBUTION = "assay-fleet"


class PluginGroup:
    """The plug-ins of one entry-point group. `noun` is what people call one of them: "ticket sink".

    A plug-in from outside must have every attribute named in `attributes`.
    """

    def __init__(self, group: str, noun: str, attributes: tuple[str, ...] = ()) -> None:
        self.group, self.noun, self._attributes = group, noun, attributes
        self._loaded: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Return the name of every installed plug-in, in alphabetical order."""
        return sorted(_read_entry_points(self.group))

    def is_own(self, name: str) -> bool:
        """Say whether assay itself provides the plug-in `name`."""
        return any(map(_is_own, _read_entry_points(self.group).get(name, ())))

    def load(self, name: str, where: str = "") -> Any:
        """Return the object that the entry point `name` refers to. No distribution can replace assay's own plug-ins.

        Raises AssayError if no plug-in, or more than one, has that name, or if it cannot be loaded. `where` says who
        uses the name.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name, where)
        return self._loaded[name]

    def _load(self, name: str, where: str) -> Any:
        points = _read_entry_points(self.group).get(name, [])
        if not points:
            fix = f"use one of these: {', '.join(self.names())}; or install the distribution that provides it"
            raise AssayError(f"there is no {self.noun} {name!r}", where=where, fix=fix)
        if len(points) > 1:
            owners = " and ".join(sorted(map(_describe_distribution, points)))
            points = [point for point in points if _is_own(point)]
            if not points:
                raise AssayError(f"the {self.noun} {name!r} is in {owners}", fix="uninstall all but one of them")
        try:
            plugin = points[0].load()
        except Exception as error:  # the import of a module from outside may raise anything
            if missing := find_missing_extra(error):
                raise missing from error
            raise self._broken(points[0], f"{type(error).__name__}: {error}") from error
        absent = [attribute for attribute in self._attributes if not hasattr(plugin, attribute)]
        if absent and not _is_own(points[0]):
            raise self._broken(points[0], f"{points[0].value} has no {', '.join(absent)}")
        return plugin

    def _broken(self, point: EntryPoint, reason: str) -> AssayError:
        return AssayError(
            f"the {self.noun} {point.name!r} of {_describe_distribution(point)} cannot be loaded: {reason}",
            fix="install a version of that distribution that fits this assay, or uninstall it",
        )


_SCHEDULER_METHODS = ("list_jobs", "read_cordon_reason", "cordon", "uncordon", "drain", "read_statuses", "cordon_many")
SCHEDULERS = PluginGroup("assay.schedulers", "scheduler", ("places_jobs", *_SCHEDULER_METHODS, "run_spare"))
"""Each is a class that implements SchedulerAdapter (adapters/scheduler.py)."""
CHECK_RULES = PluginGroup("assay.check_rules", "module of check rules")
"""Each is a module of functions with `@rule` (declare/check.py)."""
TICKET_SINKS = PluginGroup("assay.ticket_sinks", "ticket sink", ("settings_model", "is_local", "deliver", "holds"))
"""Each is a class that implements TicketSink (adapters/tickets/sink.py); `notify` alone tells people instead."""
TRANSPORTS = PluginGroup("assay.transports", "transport", ("settings_name", "settings_model", "ask"))
"""Each is a class that implements ProbeTransport (observe/transports/transport_protocol.py)."""
LOG_FORMS = PluginGroup("assay.log_forms", "log form", ("name", "is_bmc_log", "rate", "read"))
"""Each is an object that implements LogForm (observe/logs/log_form.py)."""


def load_sink_class(name: str) -> Any:
    """Return the class of the sink `name`, which a TicketRoute names."""
    return TICKET_SINKS.load(name)


@cache
def _read_entry_points(group: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name."""
    by_name: dict[str, list[EntryPoint]] = {}
    for point in _read_all_entry_points().select(group=group):
        by_name.setdefault(point.name, []).append(point)
    return by_name


@cache
def _read_all_entry_points() -> Any:  # its type differs between Python 3.11 and 3.12
    """Return the entry points of all groups. Reads a file of every installed distribution: about 5 ms."""
    from importlib.metadata import entry_points

    return entry_points()


def _is_own(point: EntryPoint) -> bool:
    """Say whether an entry point is assay's. Parses a file of the distribution: about 1 ms."""
    return point.dist is not None and point.dist.name == OWN_DISTRIBUTION


def _describe_distribution(point: EntryPoint) -> str:
    return f"the distribution {point.dist.name} {point.dist.version}" if point.dist else point.value
