"""What a device said reaches the terminal of plain pytest without control characters, however a check tells it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

HOSTILE = r"\x1b]0;owned\x07\x1b[2K\x9b1A\u202egnol\u2028\x00"
SUITE = f'''
"""Checks that repeat what a device said."""
import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]
SAID = "{HOSTILE}"

def test_that_says_it(node):
    assert node.host.cpu_threads == 1, SAID

def test_that_prints_it(node):
    print(SAID)
    assert node.host.cpu_threads == 1

def test_that_crashes_with_it(node):
    raise RuntimeError(SAID)

def test_that_skips_with_it(node):
    pytest.skip(SAID)
'''


@pytest.mark.parametrize("options", [("-rA",), ("-rA", "--assay-ordinary-items", "--tb=long"), ("-vv", "--color=yes")])
def test_no_control_character_passes(fleet_copy, options):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    fixed = [
        "--import-mode=importlib",
        "-p",
        "assay.validate.plugin",
        "-p",
        "no:cacheprovider",
        "--assay-node",
        "n0003",
    ]
    done = fleet_copy.pytester.runpytest_inprocess(
        *fixed, f"--rootdir={fleet_copy.root}", str(fleet_copy.root / "suites"), *options
    )
    text = done.stdout.str()
    assert "\x1b[2K" not in text
    assert "\\u001b]0;owned" in text
    if "--color=yes" in options:
        assert "\x1b[31m" in text, "pytest's own colours pass"
        text = text.replace("\x1b[", "")
    assert not [hex(ord(one)) for one in text if not one.isprintable() and one != "\n"]
