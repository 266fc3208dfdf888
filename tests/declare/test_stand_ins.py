"""Examples that stand in for a site's own: each has its line, and what would use one on a real machine refuses."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.check import STAND_IN_CODE, check_repository
from assay.declare.loader import load_fleet
from assay.declare.stand_ins import find_placeholder, find_placeholders, refuse_node, refuse_spec
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from tests.support.places import ROOT, SMALLEST

Write = Callable[[dict[str, str | None]], Path]

PLACEHOLDERS = (
    "ntp1.lab1.example",
    "http://boot.lab1.example:8080",
    "bmc.test",
    "nowhere.invalid",
    "https://example.com/hook",
    "images.example.org",
    "192.0.2.11",
    "198.51.100.7",
    "203.0.113.200",
    "2001:db8::11",
    "00:00:5e:00:53:af",
    "00-00-5E-00-53-01",
    "A520112X4400007",
    "@example/fabric",
)
REAL = (
    "ntp1.site.net",
    "tests.examples.org",
    "my-example.com",
    "example.company",
    "pool.ntp.org",
    "10.20.0.11",
    "192.0.20.11",
    "1192.0.2.11",
    "2001:4860::1",
    "b8:59:9f:00:53:01",
    "A520112X3400007",
    "suites/test_heat.py::test_firmware",
    "testing.invalidated",
)


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_value_that_only_documents_have_is_known(text: str) -> None:
    assert find_placeholder(text)


@pytest.mark.parametrize("text", REAL)
def test_a_value_that_a_machine_may_have_is_none(text: str) -> None:
    assert find_placeholder(text) == ""


@given(
    st.sampled_from(PLACEHOLDERS[:6]), st.text(string.ascii_lowercase, min_size=1, max_size=8), st.integers(1, 65535)
)
def test_wherever_an_example_domain_stands_in_an_address_it_is_found(host: str, user: str, port: int) -> None:
    name = host.removeprefix("http://").removeprefix("https://").partition("/")[0].partition(":")[0]
    data = {"list": [{"url": f"https://{user}.{name}:{port}/{user}"}], "description": name, name: 1}
    assert [one.path for one in find_placeholders(data)] == [("list", 0, "url")]


@pytest.fixture(scope="module")
def real() -> Fleet:
    return load_fleet(ROOT)


def test_every_document_of_the_example_that_is_invented_has_the_mark(real: Fleet) -> None:
    for kind in (real.bundles, real.provisionings, real.images, real.golden_digests, real.deliveries):
        assert all(spec.stands_in for spec in kind.values())
    marked = [name for name, spec in real.collective_workloads.items() if spec.stands_in]
    assert marked == ["virtual"]


def test_check_lists_them_for_the_fleet_and_not_for_the_lab() -> None:
    report = check_repository(ROOT)
    found = {(problem.file, problem.line) for problem in report.problems if problem.code == STAND_IN_CODE}
    assert report.is_clean
    assert report.stand_ins == len([one for one in report.problems if one.code == STAND_IN_CODE]) > 0
    files = {file for file, _ in found}
    assert {"specs/provisioning/lab1.yaml", "specs/collectives/virtual.yaml", "inventory/h100-a.yml"} < files
    assert check_repository(ROOT, is_lab=True).stand_ins == 0


def test_a_marked_document_is_refused_with_its_line_and_what_to_put_there(real: Fleet) -> None:
    with pytest.raises(AssayError, match="a search is refused on a real machine: CollectiveWorkload virtual") as caught:
        refuse_spec(real, real.collective_workloads["virtual"], "a search")
    line = next(
        number
        for number, text in enumerate((ROOT / "specs/collectives/virtual.yaml").read_text().splitlines(), 1)
        if text.startswith("stands_in:")
    )
    assert caught.value.where == f"specs/collectives/virtual.yaml:{line}"
    assert caught.value.fix.startswith("name a workload that runs on your nodes")
    refuse_spec(replace(real, is_lab=True), real.collective_workloads["virtual"], "a search")


def test_an_example_among_the_named_fields_of_a_spec_is_refused_and_others_are_not(real: Fleet) -> None:
    spec = real.node_specs["hgx-h100"]
    refuse_spec(real, spec, "a change", "bios", "kernel_cmdline")
    with pytest.raises(AssayError, match=r"ntp1\.lab1\.example") as caught:
        refuse_spec(real, spec, "a change", "host")
    assert caught.value.where.startswith("specs/nodes/hgx-h100.yaml:")


def test_a_node_with_an_example_of_a_serial_number_or_address_is_refused_with_its_line(fleet_with: Write) -> None:
    inventory = (SMALLEST / "inventory/pool.yml").read_text()
    refuse_node(load_fleet(fleet_with({})), "n1", "a reset")
    assert "u: 1" in inventory
    root = fleet_with({"inventory/pool.yml": inventory.replace("u: 1", "u: 1, bmc_address: 192.0.2.11", 1)})
    fleet = load_fleet(root)
    with pytest.raises(AssayError, match=r"a reset is refused .* an address of the documentation networks") as caught:
        refuse_node(fleet, "n1", "a reset")
    assert caught.value.where.startswith("inventory/pool.yml:")
    refuse_node(replace(fleet, is_lab=True), "n1", "a reset")


def test_what_extends_a_marked_document_has_the_mark_until_it_says_otherwise(fleet_with: Write) -> None:
    bundle = (SMALLEST / "specs/bundle.yaml").read_text()
    marked = bundle.replace("name: bundle\n", "name: bundle\nstands_in: write your own\n")
    own = "kind: FirmwareBundle\nname: own\nextends: bundle\n"
    fleet = load_fleet(
        fleet_with(
            {
                "specs/bundle.yaml": marked,
                "specs/own.yaml": own,
                "specs/mine.yaml": own.replace("own", "mine") + "stands_in: null\n",
            }
        )
    )
    assert [name for name, one in fleet.bundles.items() if one.stands_in] == ["bundle", "own"]


def test_digests_of_the_lab_vouch_for_no_real_gpu(real: Fleet) -> None:
    assert real.list_golden("hgx-h100") == []
    assert replace(real, is_lab=True).list_golden("hgx-h100")


def test_an_example_that_a_pool_gives_all_its_nodes_is_listed_once(fleet_with: Write) -> None:
    inventory = (SMALLEST / "inventory/pool.yml").read_text()
    root = fleet_with(
        {"inventory/pool.yml": inventory.replace("pool-a:\n", "pool-a:\n  vars: {slurm_conf: /etc/x.test}\n")}
    )
    found = [one for one in check_repository(root).problems if one.code == STAND_IN_CODE]
    assert [one.message for one in found] == ["n1: slurm_conf: '/etc/x.test' is a domain for examples"]
