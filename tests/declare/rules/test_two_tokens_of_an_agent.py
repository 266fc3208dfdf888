"""An agent may have two tokens while one replaces the other; the rules look at both."""

from __future__ import annotations

import json
import shutil

import pytest

from assay.declare.check import check_repository
from assay.model.specs.node_settings import NodeSettings, make_node_settings
from tests.support.places import ROOT

ONE, OTHER = {"sha256": "1" * 64}, {"file": "/etc/assay/token"}


@pytest.mark.parametrize(("given", "count"), [(ONE, 1), ([ONE], 1), ([ONE, OTHER], 2), (None, 0)])
def test_one_token_two_or_none_are_read_and_stored(given, count):
    settings = make_node_settings({"agent_token": given})
    assert len(settings.agent_token) == count
    stored = settings.model_dump_json(exclude_unset=True)
    assert NodeSettings.model_validate_json(stored).agent_token == settings.agent_token


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([ONE, OTHER], ""),
        ([ONE, OTHER, {"env": "TOKEN"}], "ASY0012"),
        ([{"sha256": "x"}], "ASY0012"),
        ([OTHER, {"file": "inventory/token"}], "ASY0095"),
        ([OTHER, {"sha256": "2" * 64}], "ASY0097"),
    ],
)
def test_each_of_the_tokens_is_checked(tmp_path, given, code):
    for part in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / part, tmp_path / part)
    hosts = {"n0003": {"agent_token": given}, "n0004": {"agent_token": {"sha256": "2" * 64}}}
    (tmp_path / "inventory/agents.yml").write_text(json.dumps({"h100-a": {"hosts": hosts}}))
    found = check_repository(tmp_path).problems
    assert {one.code for one in found if one.severity == "error"} == ({code} if code else set())
