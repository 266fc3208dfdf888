"""A Fleet is what the repository says, with the line of everything, or Trouble that names the line at fault."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.decide.state.node_entry import find_start_state
from assay.declare.check import STAND_IN_CODE, check_repository
from assay.declare.loader import load_fleet, read_draft
from assay.model.errors import AssayError

Write = Callable[[Mapping[str, "str | None"]], Path]


def test_the_example_fleet_is_twenty_nodes_in_two_pools_and_five_racks(example: Path) -> None:
    fleet = load_fleet(example)
    assert list(fleet.nodes) == [f"n{number:04}" for number in [*range(17, 21), *range(1, 17)]]
    assert {name: len(fleet.nodes_in_pool(name)) for name in ("h100-a", "byo-b")} == {"h100-a": 16, "byo-b": 4}
    racks = [node.rack for node in fleet.nodes.values()]
    assert {rack: racks.count(rack) for rack in racks} == {f"r0{number}": 4 for number in range(1, 6)}


def test_an_example_node_knows_its_place_its_spec_and_its_rails(example: Path) -> None:
    fleet = load_fleet(example)
    node = fleet.nodes["n0007"]
    assert (node.subject, node.site, node.rack, node.u) == ("h100-a/n0007", "lab1", "r02", 24)
    assert (fleet.spec_of("n0007").gpus.count, len(node.hca_guids)) == (8, 8)
    assert fleet.bundle_of("n0007").name == "hgx-h100-2026-10"
    assert (fleet.profile_of("n0007").name, fleet.profile_of("n0017").name) == ("managed", "unmanaged")
    starts = {name: find_start_state(fleet.policy, node, None) for name, node in fleet.nodes.items()}
    assert [name for name, start in starts.items() if start == "onboard"] == ["n0001", "n0002"]


def test_the_example_fleet_has_no_problem_but_that_it_is_an_example(example: Path) -> None:
    found = [problem for problem in check_repository(example).problems if problem.code != STAND_IN_CODE]
    assert [f"{problem.where} {problem.code} {problem.message}" for problem in found] == []
    assert check_repository(example, is_lab=True).problems == []


def test_every_limit_of_the_example_names_its_unit_and_its_source(example: Path) -> None:
    for spec in load_fleet(example).node_specs.values():
        if "nvidia" in spec.list_parts(True, True):
            assert spec.limits["all_reduce_bus_bandwidth"].unit == "GB/s"
        assert all(limit.unit and len(limit.source) > 10 for limit in spec.limits.values())


def test_a_limit_is_found_at_its_line(example: Path) -> None:
    file, line = load_fleet(example).lines["NodeSpec/hgx-h100", "limits.gpu_temperature"].split(":")
    assert (example / file).read_text().splitlines()[int(line) - 1].strip().startswith("gpu_temperature:")


def test_lists_and_the_document_itself_have_lines_too(fleet_with: Write) -> None:
    lines = load_fleet(fleet_with({})).lines
    assert lines["FirmwareBundle/bundle", "components.0.artifact"] == "specs/bundle.yaml:8"
    assert lines["FirmwareBundle/bundle", ""] == "specs/bundle.yaml:2"


def test_every_entry_of_every_spec_has_its_line_and_nothing_else_has(example: Path) -> None:
    fleet = load_fleet(example)
    assert fleet.lines.get(("NodeSpec/none", "limits")) is None
    assert fleet.lines.get(("NodeSpec/hgx-h100", "limits.none")) is None
    assert len(fleet.lines) == len(set(fleet.lines)) > 1000
    assert {"NodeSpec/hgx-h100", "FabricDesign/compute", "LifecyclePolicy/default"} <= {key for key, _ in fleet.lines}


def test_loading_the_example_costs_little(example: Path) -> None:
    costs = []
    for _ in range(5):
        begun = time.process_time()
        load_fleet(example)
        costs.append(time.process_time() - begun)
    assert min(costs) < 0.2  # the rest is what a full process does between times


def test_hosts_of_a_group_share_its_service_import(example: Path) -> None:
    imports = [host.settings.service_import for host in read_draft(example).hosts if host.settings]
    given = [one for one in imports if one]
    assert len(given) > len({id(one) for one in given}), "a list of every node, once for each node, takes 200 MB"


def test_an_overlay_changes_only_what_it_says(fleet_with: Write, tmp_path: Path) -> None:
    overlay = tmp_path / "lab.yml"
    overlay.write_text("all:\n  hosts:\n    n1: {bmc_address: 127.0.0.1, bmc_port: 8443, reach: [python3, shell.py]}\n")
    fleet = load_fleet(fleet_with({}), [overlay])
    assert fleet.nodes["n1"].pool == "pool-a"
    assert fleet.nodes["n1"].settings.bmc_port == 8443
    assert fleet.nodes["n2"].settings.bmc_port == 443
    assert fleet.nodes["n2"].bmc_address in ("", "n2.lab.invalid")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"specs/node.yaml": "kind: NodeSpec\nname: small\ngpus: {}\n"},
            "specs/node.yaml:3:1: gpus.model is missing (and 1",
        ),
        ({"specs/node.yaml": "a: 1\na: 2\n"}, "specs/node.yaml:2:1: the key 'a' stands twice"),
        ({"specs/node.yaml": "- 1\n"}, "specs/node.yaml:1:1: a spec is a mapping that has a kind"),
        ({"inventory/pool.yml": "pool-a: [n1]\n"}, "inventory/pool.yml:1:1: 'pool-a' is no group"),
        ({"inventory/pool.yml": "# nobody\n"}, "inventory: inventory/ names no node"),
        ({"inventory/pool.ini": "[pool]\nn1\n"}, "inventory/pool.ini: .ini is no inventory format"),
    ],
)
def test_a_fleet_that_cannot_be_read_is_trouble_with_its_place(
    changes: dict[str, str | None], says: str, fleet_with: Write
) -> None:
    with pytest.raises(AssayError) as caught:
        load_fleet(fleet_with(changes))
    assert str(caught.value).startswith(says)
    assert "`assay check` lists every problem" in caught.value.fix


def test_a_folder_without_an_inventory_is_no_fleet(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="this is no fleet repository"):
        load_fleet(tmp_path)


def test_yaml_s_booleans_are_not_taken_for_text(fleet_with: Write) -> None:
    root = fleet_with({})
    pool = root / "inventory" / "pool.yml"
    pool.write_text(pool.read_text().replace("site: lab", "site: no", 1))
    with pytest.raises(AssayError, match="n1: site: input should be a valid string, not False") as caught:
        load_fleet(root)
    assert "quote it" in caught.value.fix


def test_a_misspelt_key_is_told_the_right_one(fleet_with: Write) -> None:
    root = fleet_with({})
    node = root / "specs" / "node.yaml"
    node.write_text(node.read_text().replace("unit: °C", "units: °C"))
    found = {problem.message: problem.fix for problem in check_repository(root).problems}
    assert found["limits.gpu_temperature.units is not known here"] == "did you mean unit?"
    assert found["limits.gpu_temperature.unit is missing"] == "add unit"


def test_a_model_s_own_objection_is_told_at_the_entry_that_it_names(fleet_with: Write) -> None:
    root = fleet_with({})
    policy = root / "specs" / "policy.yaml"
    policy.write_text(policy.read_text().replace("certified_to: production", "certified_to: attic"))
    (found,) = check_repository(root).problems
    assert (found.where, found.code) == ("specs/policy.yaml:6:27", "ASY0088")
    assert "'attic' is no state" in found.message


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        ("  production: [onboard]", "  production: [attic]", "ASY0088", "edges.production.0: 'attic' is no state"),
        ("edges:\n", "  attic: {summary: lost}\nedges:\n", "ASY0075", "no way back into service from: attic"),
        ("certified_to", "fail_to: onboard, certified_to", "ASY0089", "edges draw no onboard → onboard"),
        ("{timing: pending, to: onboard}", "{timing: pending, blame: [hardware]}", "ASY0077", "must match everything"),
        ("rungs: {}", "rungs: {zap: {to: onboard, then: rma}}", "ASY0076", "zap.then is rma, which is no rung"),
        ("rungs: {}", "rungs: {zap: {to: onboard, then: zap}}", "ASY0076", "climbs in a circle: zap → zap"),
        ("faults:\n  any: {timing: pending, to: onboard}", "faults: {}", "ASY0077", "no rule answers any fault"),
    ],
)
def test_a_policy_with_a_hole_is_refused(old: str, new: str, code: str, says: str, fleet_with: Write) -> None:
    root = fleet_with({})
    policy = root / "specs" / "policy.yaml"
    assert old in policy.read_text()
    policy.write_text(policy.read_text().replace(old, new, 1))
    (found,) = [problem for problem in check_repository(root).problems if problem.file == "specs/policy.yaml"]
    assert found.code == code
    assert says in found.message


@pytest.mark.parametrize(
    ("credentials", "right"),
    [
        ("{env: BMC}", True),
        ("{file: bmc.txt}", True),
        ("{env: BMC, file: bmc.txt}", False),
        ("admin:secret", False),
        ("[{env: 'admin:secret'}]", False),
    ],
)
def test_credentials_are_references_and_never_the_secret_itself(
    credentials: str, right: bool, fleet_with: Write
) -> None:
    root = fleet_with({})
    pool = root / "inventory" / "pool.yml"
    pool.write_text(pool.read_text().replace("u: 1", f"u: 1, bmc_credentials: {credentials}"))
    found = check_repository(root).problems
    assert (found == []) is right
    assert "admin:secret" not in str(found)


def test_a_group_s_mistake_is_told_once_and_a_host_s_by_its_name(fleet_with: Write) -> None:
    root = fleet_with({})
    pool = root / "inventory" / "pool.yml"
    pool.write_text(pool.read_text().replace("  hosts:", "  vars: {bmc_port: 0}\n  hosts:").replace("u: 2", "u: 99"))
    assert [(problem.where, problem.message.split(":")[0]) for problem in check_repository(root).problems] == [
        ("inventory/pool.yml:3:10", "bmc_port"),
        ("inventory/pool.yml:6:67", "n2"),
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "fix"),
    [
        ("specs/bundle.yaml", "reset: bmc", "reset: bcm", "ASY0003", "did you mean bmc?"),
        ("specs/bundle.yaml", 'version: "1"', "version: 1.10", "ASY0003", "quote it"),
        ("specs/bundle.yaml", "sha256: ba", "sha256: xx", "ASY0003", "write it in that form"),
        ("specs/node.yaml", "name: small", "name: small\nname: small", "ASY0001", "keep one of the two"),
        ("specs/node.yaml", "needed: 1", "needed: 3", "ASY0004", "correct the value"),
        ("specs/node.yaml", "size_gb: 10", "size_gb: ten", "ASY0003", "write a whole number"),
        ("specs/policy.yaml", "timing: pending", "timing: soon", "ASY0003", "use one of immediate, pending, record"),
        ("specs/faults.yaml", "check: true", "check: maybe", "ASY0003", "write true or false"),
        ("specs/checks.yaml", "[production]", "production", "ASY0003", "write a list"),
        ("specs/checks.yaml", "kind: CheckCatalog", "kind: Checks", "ASY0002", "use one of AdapterNames, BmcQuirks, "),
        ("suites/test_heat.py", "def test_heat(", "def test_heat(:", "ASY0063", "correct the syntax"),
    ],
)
def test_one_mistake_is_told_once_and_not_as_all_that_follows_from_it(
    file: str, old: str, new: str, code: str, fix: str, fleet_with: Write
) -> None:
    root = fleet_with({})
    path = root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    (found,) = check_repository(root).problems
    assert (found.file, found.code) == (file, code)
    assert found.fix.startswith(fix)


def test_groups_that_contain_themselves_are_named(fleet_with: Write) -> None:
    root = fleet_with({"inventory/more.yml": "a: {children: {b: }}\nb: {children: {a: }}\n"})
    assert [problem.message for problem in check_repository(root).problems] == ["groups contain themselves: a → b → a"]


def test_a_long_chain_of_groups_is_no_reason_to_give_up(fleet_with: Write) -> None:
    chain = "".join(f"g{number}: {{children: {{g{number + 1}: }}}}\n" for number in range(3000))
    assert len(load_fleet(fleet_with({"inventory/chain.yml": chain})).nodes) == 2


def test_the_fleet_knows_its_commit_and_whether_it_was_changed_since(fleet_with: Write) -> None:
    root = fleet_with({})
    assert (load_fleet(root).commit, load_fleet(root).dirty) == ("", False)
    _git(root, "init", "-q")
    assert (load_fleet(root).commit, load_fleet(root).dirty) == ("", True)
    _git(root, "add", ".")
    _git(root, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "first")
    fleet = load_fleet(root)
    assert (fleet.commit, fleet.dirty) == (_git(root, "rev-parse", "HEAD"), False)
    (root / "reports").mkdir()
    (root / "reports" / "x").write_text("no declaration")
    assert not load_fleet(root).dirty
    (root / "specs" / "new.txt").write_text("a declaration, perhaps")
    assert load_fleet(root).dirty


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return run.stdout.strip()
