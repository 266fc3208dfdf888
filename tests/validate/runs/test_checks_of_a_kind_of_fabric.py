"""A check that needs one kind of fabric is due on fabrics of that kind, their switches and rails, and nowhere else."""

import pytest

from assay.declare.loader import load_fleet
from assay.model.specs.check_catalog import CheckDeclaration
from assay.validate.runs.subjects import NodeSelection
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def everything() -> NodeSelection:
    fleet = load_fleet(ROOT / "suites/recordings/fleet")
    return NodeSelection(fleet, tuple(fleet.nodes))


@pytest.mark.parametrize("subject", ["fabric", "switch", "rail"])
@pytest.mark.parametrize(
    ("needs", "names"),
    [(["infiniband"], {"compute"}), (["roce"], {"ethernet"}), ([], {"compute", "ethernet"}), (["nvidia"], set())],
)
def test_a_fabric_is_judged_by_checks_of_its_kind(everything, subject, needs, names):
    check = CheckDeclaration(id="suites/fabric/test_x.py::test_x", subject=subject, phases=["fabric"], needs=needs)
    assert {each.name for each, _ in everything.due_subjects(check)} == names


@pytest.mark.parametrize(("kind", "spec"), [("infiniband", "hgx-h100"), ("roce", "hgx-h100-roce")])
def test_a_link_is_judged_by_checks_of_its_adapter_s_kind(everything, kind, spec):
    check = CheckDeclaration(
        id="suites/fabric/test_x.py::test_x", subject="hca", phases=["fabric"], needs=["fabric", kind]
    )
    fleet = everything.fleet
    assert {fleet.nodes[node].spec for _, node in everything.due_subjects(check)} == {spec}
