"""The example in docs/faults.md is what a site may write."""

from __future__ import annotations

import re

import yaml

from assay.model.specs.fault_catalog import FaultClass
from tests.support.places import ROOT

TEXT = (ROOT / "docs" / "faults.md").read_text()


def test_the_example_of_a_site_lays_over_what_is_there(catalog):
    examples = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
    (site,) = (example for example in examples if "extends" in example)
    base = yaml.safe_load((ROOT / "specs" / "faults" / f"{site['extends']}.yaml").read_text())
    assert site["classes"].keys() <= base["classes"].keys()
    for name, changed in site["classes"].items():
        assert FaultClass.model_validate({**base["classes"][name], **changed}) != catalog.classes[name]
