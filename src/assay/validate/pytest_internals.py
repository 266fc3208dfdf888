"""The one module that uses private API of pytest; each use says why public API does not do.

A new version of pytest may break any of it, so pyproject.toml limits the version, and
tests/validate/test_private_pytest_api.py holds every other module to public API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pytest
from _pytest import fixtures
from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression
from _pytest.nodeid import NodeId

from assay.model.text.safe_text import escape_all_but_styles, escape_controls

__all__ = [
    "IS_SILENT_KEY",
    "Expression",  # -k and -m before there are items; pytest applies them only to items that it has collected
    "KeywordMatcher",  # the names that -k matches, likewise
    "LazyItem",
    "MarkMatcher",  # the marks that -m matches, likewise
    "TerminalDots",
    "escape_terminal",
    "exempt_assay_from_rewriting",
    "find_fixture_functions",
    "fixture_order_only_of_ordinary_items",
    "has_setup_left",
    "is_own_hook",
    "tear_down_until",
]

OWN_PACKAGES = frozenset({"_pytest", "assay"})
"""Top-level packages whose hooks treat a slim item as pytest treats any item."""
IS_SILENT_KEY = pytest.StashKey[bool]()
"""Whether outcomes are not shown as they come."""


def is_own_hook(function: Callable[..., Any]) -> bool:
    """Return whether a hook function is pytest's or assay's own. pytest's plugins have no public common base."""
    return function.__module__.partition(".")[0] in OWN_PACKAGES


def exempt_assay_from_rewriting(manager: pytest.PytestPluginManager) -> None:
    """Let assay's modules be imported without assertion rewriting, which pytest does for all of a plugin's package.

    Compiling them costs more than one check of one node, and they have no assertions to explain. The public
    `register_assert_rewrite` only adds packages.
    """
    getattr(manager.rewrite_hook, "_must_rewrite", set()).discard("assay")


class _PrintableFile:
    """A file of pytest's terminal, in which devices write no control characters. pytest begins anew a line by one."""

    def __init__(self, file: Any, escape: Callable[[str], str]) -> None:
        self._below, self._escape = file, escape

    def write(self, text: str) -> int:
        line = text.removeprefix("\r") if self._below.isatty() else text
        self._below.write(text[: len(text) - len(line)] + self._escape(line))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)


def escape_terminal(config: pytest.Config) -> None:
    """Let pytest print what checks say without control characters. Its writer has no public hook for texts."""
    if config.pluginmanager.hasplugin("terminalreporter"):
        writer = config.get_terminal_writer()
        writer._file = _PrintableFile(writer._file, escape_all_but_styles if writer.hasmarkup else escape_controls)


class LazyItem(pytest.Item):
    """A pytest item whose containers are made when they are first read, since a session may hold 100,000 items.

    `Item.__init__` is not called: for each item it makes an id, a stash, keywords and lists of markers and sections.
    Its public way, `from_parent`, always does.
    """

    def __init__(
        self, *, name: str, parent: pytest.Collector, own_markers: list[pytest.Mark], keywords: dict[str, Any]
    ) -> None:
        self.name = name
        self.parent = parent
        self.path = parent.path
        self.config, self.session = parent.config, parent.session
        self.own_markers, self.keywords = own_markers, keywords

    @cached_property
    def _id(self) -> NodeId:  # type: ignore[override]  # parsed, since pytest keeps the name and its brackets apart
        assert self.parent is not None
        return NodeId.parse(f"{self.parent.nodeid}::{self.name}")

    @cached_property
    def stash(self) -> pytest.Stash:  # type: ignore[override]
        """Where plugins store values for this item."""
        return pytest.Stash()

    @cached_property
    def _store(self) -> pytest.Stash:  # type: ignore[override]
        return self.stash

    @cached_property
    def extra_keyword_matches(self) -> set[str]:  # type: ignore[override]
        """Further names that -k matches."""
        return set()

    @cached_property
    def user_properties(self) -> list[tuple[str, object]]:  # type: ignore[override]
        """What plugins add to the item's report."""
        return []

    @cached_property
    def _report_sections(self) -> list[tuple[str, str, str]]:  # type: ignore[override]
        return []


def find_fixture_functions(module: pytest.Module, function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return the function of each fixture that pytest would use for a test function, automatic ones too, by name.

    Public API tells this only of an item that was made.
    """
    info = module.session._fixturemanager.getfixtureinfo(module, function, None)  # type: ignore[arg-type]  # any node
    return {name: fixtures[-1].func for name, fixtures in info.name2fixturedefs.items()}


@contextmanager
def fixture_order_only_of_ordinary_items() -> Iterator[None]:
    """Let pytest order a session of lazy items by no fixtures: they have none, and it looks four times at each.

    A session with any other item is ordered as always. There is no public way to leave a step of pytest out.
    """
    order = fixtures.reorder_items

    def order_ordinary(items: Sequence[pytest.Item]) -> list[pytest.Item]:
        is_lazy = all(isinstance(item, LazyItem) for item in items)
        return list(dict.fromkeys(items)) if is_lazy else order(items)

    fixtures.reorder_items = order_ordinary
    try:
        yield
    finally:
        fixtures.reorder_items = order


def has_setup_left(session: pytest.Session) -> bool:
    """Return whether collectors or fixtures of an ordinary item are still set up. No public API tells."""
    return bool(session._setupstate.stack)


def tear_down_until(session: pytest.Session, next_item: pytest.Item | None) -> None:
    """Tear down what `next_item` does not need. pytest offers this only as part of an item's own teardown."""
    session._setupstate.teardown_exact(next_item)


class TerminalDots:
    """Writes a dot for each pass, several in one write, where pytest's reporter would write; if silent, only counts.

    The public way is one report an item, and costs more than judging it.
    """

    def __init__(self, reporter: pytest.TerminalReporter, *, is_silent: bool = False) -> None:
        self._reporter, self._is_silent = reporter, is_silent

    @staticmethod
    def is_possible(reporter: object) -> bool:
        """Return whether the reporter is pytest's own, and shows no time after each line."""
        return type(reporter) is pytest.TerminalReporter and reporter._show_progress_info != "times"

    def count_columns_left(self) -> int:
        """Return after how many dots pytest writes its progress, or a line is full where it writes none."""
        reporter = self._reporter
        if not reporter._show_progress_info:
            return reporter._screen_width
        message = reporter._get_progress_information_message() if reporter._show_progress_info == "count" else " [100%]"
        return max(1, reporter._screen_width - reporter._width_of_current_line - len(message) - 1)

    def write(self, items: Sequence[pytest.Item], passes: list[Any]) -> None:
        """Write a dot for each of the items. `passes` lists all passes, for the reporter's summary."""
        reporter = self._reporter
        reporter._tests_ran = True
        reporter._progress_nodeids_reported.update(items)  # type: ignore[arg-type]  # pytest only counts them
        if reporter.stats.get("passed") is not passes:
            passes.extend(reporter.stats.get("passed", ()))
            reporter.stats["passed"] = passes
            reporter._set_main_color()
        if self._is_silent:
            return
        reporter.write("." * len(items), green=True)
        if reporter._show_progress_info and not reporter._is_last_item:
            reporter._write_progress_information_if_past_edge()
        reporter.flush()
