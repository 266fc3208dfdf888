"""Runs a session in which only pytest itself looks at each item: neighbours that are slim in one call of the protocol.

Whatever wraps the protocol (warnings, the comparison of assertions) does so once for all of them, which is most of what
pytest's own loop would cost. Where a plugin or a conftest has a part in the protocol, that loop runs every item.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import pytest

from assay.harness.dots import OWN, Dots
from assay.harness.protocol import Protocol
from assay.harness.slim import SlimItem

WATCHED = ("pytest_runtest_protocol", "pytest_runtestloop", "pytest_assertion_pass")
"""Hooks that say something of one item, or run the items otherwise (as xdist's workers do)."""

RARELY = 100_000
"""Objects that are made before the collector looks for circles among them; else it would at each document."""


class Loop:
    """The loop of one session. `protocol` judges."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all items as pytest does, or leave that to it."""
        going_on = not session.testsfailed or session.config.option.continue_on_collection_errors
        if session.config.option.collectonly or not going_on or not is_alone(session.config):
            return None
        dots = Dots.of(session.config)
        try:
            with rarely_collected():
                self._run(session, dots)
        finally:
            if dots is not None:
                dots.show()
        return True

    def _run(self, session: pytest.Session, dots: Dots | None) -> None:
        items, at = session.items, 0
        while at < len(items):
            neighbours = together(items, at)
            if dots is not None and not neighbours:
                dots.show()
            self._protocol.judge_together(neighbours, dots)
            after = at + max(1, len(neighbours))
            nextitem = items[after] if after < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=items[at], nextitem=nextitem)
            at += self._protocol.judged
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Let garbage in circles wait for more of it: judging leaves next to none, and reading evidence makes none."""
    was = gc.get_threshold()
    gc.set_threshold(RARELY, *was[1:])
    try:
        yield
    finally:
        gc.set_threshold(*was)


def is_alone(config: pytest.Config) -> bool:
    """Return whether nobody but pytest and these suites has a part in how an item is run."""
    found = [one.function for name in WATCHED for one in getattr(config.hook, name).get_hookimpls()]
    return not _has_a_deadline(config) and all(one.__module__.partition(".")[0] in OWN for one in found)


def _has_a_deadline(config: pytest.Config) -> bool:
    """Return whether pytest would dump the stack of an item that takes long (`faulthandler_timeout`)."""
    return config.pluginmanager.has_plugin("faulthandler") and float(config.getini("faulthandler_timeout") or 0) > 0


def together(items: Sequence[pytest.Item], at: int) -> list[SlimItem]:
    """Return the slim items of one node that begin at `at`; none where another item stands there."""
    first, end = items[at], at
    if not isinstance(first, SlimItem):
        return []
    while end < len(items) and _goes_with(first, items[end]):
        end += 1
    return cast("list[SlimItem]", items[at : max(end, at + 1)])


def _goes_with(first: SlimItem, item: pytest.Item) -> bool:
    """Return whether an item is slim too, and whether the same hooks say the same of both."""
    return (
        isinstance(item, SlimItem)
        and item.whose == first.whose
        and item.ihook is first.ihook
        and not item.added
        and not first.added
    )
