"""Checks that cannot mean what they say: what they do is not what pytest does with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches

from assay.declare.check_functions import CheckSource
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import FilePosition, RuleFinding, rule

BROAD_EXCEPTIONS = {"AssertionError", "BaseException", "Exception"}
KNOWN_MARKS = ("active", "fault", "parametrize", "passive", "phase", "skip", "skipif", "usefixtures")
VERDICT_CALLS = {"fail", "skip", "exit"}
"""Functions of pytest that give a verdict, so an exception that ends in one of them is not lost."""


@rule("ASY0390", "a check that returns a value", why="pytest ignores what a check returns, so the check would pass.")
def returning_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks that return a value, or yield one."""
    for check in draft.suites.checks:
        for node in check.nodes:
            is_value = isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value)
            if is_value or isinstance(node, ast.Yield | ast.YieldFrom):
                yield RuleFinding(_at(check, node), f"{check.name} returns a value", "write `assert` before the value")


@rule("ASY0391", "an assertion that always holds", why="The check cannot fail there.")
def idle_assertion(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find assertions of a tuple, a text or another constant that is always true."""
    for check in draft.suites.checks:
        for node in check.nodes:
            if isinstance(node, ast.Assert) and _is_always_true(node.test):
                fix = "write `assert CONDITION, MESSAGE`, without brackets around both"
                yield RuleFinding(_at(check, node), f"{check.name} asserts something that is always true", fix)


@rule("ASY0392", "a check that is a coroutine", why="pytest does not await it, so nothing of it is judged.")
def coroutine_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks that are `async def`."""
    for check in draft.suites.checks:
        if isinstance(check.function, ast.AsyncFunctionDef):
            yield RuleFinding(_at(check, check.function), f"{check.name} is `async def`", "write `def`")


@rule("ASY0393", "a mark that nobody knows", why="A misspelt mark has no effect: no phase, no fault, no skip.")
def misspelt_mark(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find marks whose names are nearly those of assay or pytest."""
    for file, module in draft.suites.modules:
        for node in ast.walk(module):
            if isinstance(node, ast.Attribute) and _is_pytest_mark(node.value) and node.attr not in KNOWN_MARKS:
                near = get_close_matches(node.attr, KNOWN_MARKS, n=1, cutoff=0.75)
                if near:
                    place = (file, node.lineno, node.col_offset + 1)
                    yield RuleFinding(place, f"there is no mark {node.attr}", f"did you mean {near[0]}?")


@rule("ASY0394", "an exception that a check swallows", why="A failure, or a missing reading, ends there unseen.")
def swallowed_exception(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find `except Exception`, or broader, without a verdict, and `suppress` of the same."""
    for check in draft.suites.checks:
        for node in check.nodes:
            if (isinstance(node, ast.ExceptHandler) and _is_swallowing(node)) or _is_broad_suppress(node):
                fix = "catch the one exception that you expect, or let it end the check"
                yield RuleFinding(_at(check, node), f"{check.name} swallows every exception", fix)


@rule("ASY0395", "two checks of one name in a module", why="Python keeps only the last of two functions.")
def repeated_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks of one module that have the same name, in classes or not."""
    seen: dict[str, CheckSource] = {}
    for check in draft.suites.checks:
        first = seen.setdefault(check.name, check)
        if first is not check:
            message = f"{check.name} is already defined in line {first.function.lineno}"
            yield RuleFinding(_at(check, check.function), message, "give one of the two another name")


@rule("ASY0396", "a check with a parametrize of its own", why="A check gives one outcome for each subject.")
def parametrized_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks that are parametrized: assay parametrizes each one over its subjects."""
    for check in draft.suites.checks:
        for decorator in check.function.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(call, ast.Attribute) and call.attr == "parametrize" and _is_pytest_mark(call.value):
                fix = "write a function for each value, or a loop with `measure(…, place=…)`"
                yield RuleFinding(_at(check, check.function), f"{check.name} has a parametrize of its own", fix)


def _at(check: CheckSource, node: ast.AST) -> FilePosition:
    where = node if hasattr(node, "lineno") else check.function
    return check.file, where.lineno, where.col_offset + 1  # type: ignore[attr-defined]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_always_true(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return bool(node.elts)
    return isinstance(node, ast.JoinedStr | ast.Lambda) or (isinstance(node, ast.Constant) and bool(node.value))


def _is_pytest_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "mark"


def _is_swallowing(handler: ast.ExceptHandler) -> bool:
    if handler.type is not None and not _names(handler.type) & BROAD_EXCEPTIONS:
        return False
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    gives_verdict = any(isinstance(node, ast.Call) and _names(node.func) & VERDICT_CALLS for node in nodes)
    return not gives_verdict and not any(isinstance(node, ast.Raise | ast.Assert) for node in nodes)


def _is_broad_suppress(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or "suppress" not in _names(node.func):
        return False
    return any(_names(argument) & BROAD_EXCEPTIONS for argument in node.args)


def _names(node: ast.expr) -> set[str]:
    """Return the last part of each name in an expression."""
    if isinstance(node, ast.Tuple):
        return {name for element in node.elts for name in _names(element)}
    return {node.attr} if isinstance(node, ast.Attribute) else {node.id} if isinstance(node, ast.Name) else set()
