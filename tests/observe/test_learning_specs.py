"""A good node's evidence drafts its spec: what was read is there, what was not is said, and nothing is made up."""

from __future__ import annotations

import copy
import json
import shutil
from functools import cache, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.cli.verbs.specs import specs_app
from assay.declare.loader import load_fleet
from assay.declare.yaml import parse_yaml
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.specs.node.bmc_settings import BmcAccountsSpec
from assay.model.specs.node.node_spec import NodeSpec
from assay.observe.spec_draft import draft_node_spec
from assay.observe.spec_values import ObservedNode
from tests.support.places import ROOT

FLEET = load_fleet(ROOT)
SPECS = ["hgx-h100", "gb200-nvl72"]
TOLD = {
    "product", "firmware", "driver", "gpus", "nics", "nvme", "fans", "cpu_sockets", "cpu_threads", "memory_gib",
    "kernel_cmdline", "hcas", "fabric_manager",
}  # fmt: skip
NOT_TOLD = {"height_u", "psus"}  # wholly or in part from the present spec


def recorded(spec: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_recorded_text(spec))
    return document


@cache
def _recorded_text(spec: str) -> str:
    return (ROOT / "suites" / "recordings" / f"{spec}.json").read_text()


def seen(spec: str, *, present: bool = True, document: dict[str, Any] | None = None) -> ObservedNode:
    evidence = EvidenceDocument.from_json(document or recorded(spec))
    node = Node(evidence.node, "pool", "lab1", "r1", 1, "S1", spec, "managed", _recorded_guids(spec))
    return ObservedNode(evidence, node, FLEET.node_specs[spec] if present else None, FLEET.bundles)


@cache
def _recorded_guids(spec: str) -> tuple[str, ...]:
    return tuple(_guids(EvidenceDocument.from_json(recorded(spec))))


def _guids(evidence: EvidenceDocument) -> list[str]:
    hcas = evidence.read("probe", "hca").value
    return sorted(hca["guid"]["value"] for hca in hcas.values())


def accepted(text: str) -> NodeSpec:
    """Read a draft as the fleet's reader does."""
    return NodeSpec.model_validate(parse_yaml(text.encode(), "specs/nodes/draft.yaml").data)


def add_what_people_say(learned: NodeSpec, declared: NodeSpec) -> NodeSpec:
    """Add what no reading tells: what a spec extends, which faults are usual, and what it has apart or inside."""
    bmc = learned.bmc and declared.bmc and learned.bmc.model_copy(update={"network": declared.bmc.network})
    more = {name: getattr(declared, name) for name in ("extends", "usual_faults", "tpm")} | {"bmc": bmc}
    return learned.model_copy(update=more)


@pytest.mark.parametrize("spec", SPECS)
def test_the_draft_of_a_good_node_is_its_spec(spec: str) -> None:
    declared = FLEET.node_specs[spec]
    learned = accepted(draft_node_spec(seen(spec)))
    assert add_what_people_say(learned, declared) == declared


@pytest.mark.parametrize("spec", SPECS)
def test_without_a_spec_to_go_by_evidence_tells_all_but_what_nothing_reads(spec: str) -> None:
    learned, declared = (
        accepted(draft_node_spec(seen(spec, present=False), ["gpu_temperature"])),
        FLEET.node_specs[spec],
    )
    assert {name: getattr(learned, name) for name in TOLD} == {name: getattr(declared, name) for name in TOLD}
    assert [(hca.name, hca.rail) for hca in learned.hcas] == [(hca.name, hca.rail) for hca in declared.hcas]
    assert learned.limits == {}
    assert "# review: no evidence of one node sets gpu_temperature" in draft_node_spec(
        seen(spec, present=False), ["gpu_temperature"]
    )


@pytest.mark.parametrize("spec", SPECS)
def test_facts_of_the_hardware_become_limits_with_evidence_as_their_source(spec: str) -> None:
    wanted = ["pcie_width", "pcie_generation", "gpu_power_limit", "nvlink_links", "hca_rate"]
    learned, declared = (
        accepted(draft_node_spec(seen(spec, present=False), wanted)).limits,
        FLEET.node_specs[spec].limits,
    )
    assert {(name, learned[name].value, learned[name].unit) for name in wanted} == {
        (name, declared[name].value, declared[name].unit) for name in wanted
    }
    assert all(learned[name].source.startswith(f"learned from {seen(spec).evidence.node} on 20") for name in wanted)


def test_what_differs_from_the_present_limit_is_learned_and_to_be_reviewed() -> None:
    document = recorded("hgx-h100")
    for gpu in document["channels"]["probe"]["gpu"]["devices"].values():
        gpu["power"]["limit_w"] = {"value": 650.0}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert accepted(text).limits["gpu_power_limit"].value == 650
    assert "# review: the present limit is 700 W (NVIDIA H100" in text


def test_a_fact_that_not_all_parts_agree_on_is_not_learned() -> None:
    document = recorded("hgx-h100")
    document["channels"]["probe"]["gpu"]["devices"]["0000:61:00.0"]["pcie"]["width"] = {"value": 8}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert accepted(text).limits["pcie_width"].value == 16
    assert "# review: pcie_width was not learned: pcie.width reads 8, 16" in text


def test_a_gpu_that_does_not_answer_is_left_out_and_said() -> None:
    document = recorded("hgx-h100")
    document["channels"]["probe"]["gpu"]["devices"]["0000:61:00.0"] = {"failed": "GPU is lost"}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert accepted(text).gpus.count == 7
    assert "# review: a GPU did not answer, and is left out: 0000:61:00.0: failed: GPU is lost" in text


def test_an_adapter_that_the_inventory_does_not_know_gets_a_free_rail_to_be_reviewed() -> None:
    document = recorded("hgx-h100")
    evidence = EvidenceDocument.from_json(document)
    known = _guids(evidence)
    node = Node("n0003", "pool", "lab1", "r1", 1, "S1", "hgx-h100", "managed", (*known[:5], "0x1", *known[6:]))
    text = draft_node_spec(ObservedNode(evidence, node, bundles=FLEET.bundles))
    assert [hca.rail for hca in accepted(text).hcas] == list(range(8))
    assert "# review: mlx5_5 has no GUID of the inventory: its rail is a guess" in text


def test_what_was_not_read_is_taken_from_the_present_spec_and_said() -> None:
    document = recorded("hgx-h100")
    document["channels"]["probe"] = {"failed": "no answer within 5 s"}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert accepted(text).driver == FLEET.node_specs["hgx-h100"].driver
    assert "# review: driver was not read: failed: no answer within 5 s; taken from hgx-h100" in text


def test_what_was_not_read_and_stands_nowhere_is_left_open_and_not_made_up() -> None:
    document = recorded("hgx-h100")
    document["channels"]["probe"]["gpu"] = {"absent": "no NVIDIA driver"}
    text = draft_node_spec(seen("hgx-h100", present=False, document=document))
    learned = accepted(text)
    assert (learned.driver, learned.gpus.count) == ("", 0)
    assert "# review: probe.gpu.devices was not read: absent: no NVIDIA driver\n# gpus:" in text


def test_an_adapter_that_does_not_tell_its_place_has_the_specs() -> None:
    document = recorded("hgx-h100")
    document["channels"]["probe"]["hca"]["mlx5_2"]["pci"] = {"failed": "no PCI device"}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert accepted(text).hcas == FLEET.node_specs["hgx-h100"].hcas
    assert "# review: mlx5_2 does not show its PCI address; taken from the spec" in text


def test_what_the_host_is_made_of_is_learned_but_not_what_people_choose() -> None:
    learned, declared = (
        accepted(draft_node_spec(seen("hgx-h100", present=False))).host,
        FLEET.node_specs["hgx-h100"].host,
    )
    chosen = {"services": [], "modules": [], "sysctls": {}, "files": {}, "module_options": {}, "hugepages": {}}
    chosen |= {"unit_settings": {}, "time_servers": []}
    assert learned == declared.model_copy(update=chosen)


def test_modules_that_differ_are_not_learned_as_if_all_were_alike() -> None:
    document = recorded("hgx-h100")
    dimms = document["channels"]["probe"]["memory"]["firmware"]["dimms"]
    dimms["P1-DIMMA1"]["size_bytes"] = {"value": 32 * 2**30}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert "# review: host.dimms was not read" in text
    assert accepted(text).host == FLEET.node_specs["hgx-h100"].host


def test_nothing_that_a_device_says_can_leave_its_comment() -> None:
    document = recorded("hgx-h100")
    document["channels"]["probe"]["host"]["product"] = {"failed": "odd\nname: other\x00"}
    assert accepted(draft_node_spec(seen("hgx-h100", document=document))).name == "hgx-h100"


def _planted(spec: NodeSpec) -> NodeSpec:
    """Return the spec with another value wherever one can stand: that of another kind of node."""
    limits = {name: limit.model_copy(update={"value": 4321.0}) for name, limit in spec.limits.items()}
    host = {"services": ["planted.service"], "modules": ["planted_module"], "sysctls": {"planted.key": "1"}}
    host |= {"kernel": "planted", "governor": "planted", "dimms": {"count": 1, "size_gib": 1, "speed_mts": 1}}
    others = {"boot": {"first": "planted"}, "bios": {"Planted": "1"}, "rack": RACK, "leak_detectors": 77, "height_u": 9}
    texts = dict.fromkeys(("description", "owner", "product", "driver", "firmware"), "planted")
    parts = {"fans": 77, "cpu_sockets": 77, "cpu_threads": 77, "memory_gib": 77, "kernel_cmdline": ["planted"]}
    parts |= {"gpus": {"model": "planted", "pci": ["planted"]}, "nvme": {"count": 77, "size_gb": 77}}
    parts |= {"psus": {"count": spec.psus.count, "needed": 1}, "nics": [{"name": "planted", "speed_mbps": 77}]}
    hcas = [{"name": hca.name, "rail": hca.rail, "pci": "planted"} for hca in spec.hcas]
    bmc = {"power_restore": "AlwaysOff", "ntp": {"servers": ["planted"]}, "accounts": {"users": {"planted": ACCOUNT}}}
    others["bmc"] = bmc | {"syslog": [{"server": "planted", "port": 1, "protocol": "SyslogTCP"}]}
    told = (
        spec.model_dump(mode="json", exclude={"extends"}, exclude_defaults=True)
        | texts
        | parts
        | others
        | {"hcas": hcas, "host": host}
    )
    return NodeSpec.model_validate({**told, "limits": {name: limit.model_dump() for name, limit in limits.items()}})


ACCOUNT = {"role": "planted", "password": {"env": "PLANTED"}}
RACK = {"nodes": 77, "gpus": 77}
UNREAD = [
    (), ("probe",), ("bmc",), ("probe", "host"), ("probe", "gpu"), ("probe", "hca"), ("probe", "hca", "mlx5_2", "pci"),
    ("probe", "nic"), ("probe", "nvme"), ("probe", "memory"), ("probe", "kernel"), ("bmc", "psu"), ("bmc", "firmware"),
    ("bmc", "settings"), ("bmc", "settings", "ntp", "servers"), ("bmc", "settings", "syslog"),
]  # fmt: skip


@pytest.mark.parametrize("unread", UNREAD, ids=".".join)
def test_no_value_of_another_kind_of_node_comes_without_a_mark(unread: tuple[str, ...]) -> None:
    document = recorded("hgx-h100")
    if unread:
        *above, last = ("channels", *unread)
        reduce(lambda tree, step: tree[step], above, document)[last] = {"failed": "no answer"}
    observed = seen("hgx-h100", document=document)
    other = ObservedNode(observed.evidence, observed.node, _planted(FLEET.node_specs["hgx-h100"]), observed.bundles)
    text = draft_node_spec(other)
    own = draft_node_spec(seen("hgx-h100", present=False, document=document), FLEET.node_specs["hgx-h100"].limits)
    heads = {line for line in text.splitlines() if line.endswith(":") or line.startswith("#")}
    copied = [line for line in text.splitlines() if line.strip() not in own and line not in heads]
    assert len(copied) > 80
    assert [line for line in _list_unmarked(text) if line in copied] == []
    accepted(text)


def _list_unmarked(text: str) -> list[str]:
    """Return the lines without a mark of their own, of a block that they stand in, or of the line above."""
    marked_indent, found = None, []
    for above, line in pairwise(text.splitlines()):
        indent = (
            len(line) - len(line.lstrip()) + line.lstrip().startswith("-")
        )  # YAML does not indent the items of a list
        if marked_indent is not None and indent <= marked_indent:
            marked_indent = None
        if marked_indent is None and "# review: " in line and line.partition("#")[0].strip().endswith(":"):
            marked_indent = indent
        if marked_indent is None and "# review: " not in line and not above.lstrip().startswith("# review: "):
            found.append(line)
    return found


def test_settings_of_the_bmc_are_learned_but_its_accounts_are_for_people_to_add() -> None:
    text = draft_node_spec(seen("hgx-h100", present=False))
    learned, declared = accepted(text).bmc, FLEET.node_specs["hgx-h100"].bmc
    assert learned == declared.model_copy(update={"accounts": BmcAccountsSpec(), "network": None})
    assert "# review: bmc: keep what all nodes like this one must have; accounts are left out" in text
    assert "  accounts:  # review: taken from hgx-h100, not read on this node" in draft_node_spec(seen("hgx-h100"))


def test_a_setting_of_the_bmc_that_no_spec_can_hold_is_taken_from_the_present_spec_and_said() -> None:
    document = recorded("hgx-h100")
    document["channels"]["bmc"]["settings"]["syslog"] = {"value": ["tcp://elsewhere"]}
    document["channels"]["bmc"]["settings"]["power_restore"] = {"value": "Maybe"}
    text = draft_node_spec(seen("hgx-h100", document=document))
    assert accepted(text).bmc == FLEET.node_specs["hgx-h100"].bmc
    assert "# review: bmc.syslog was not read; taken from hgx-h100" in text
    assert "# review: bmc.power_restore was not read; taken from hgx-h100" in text


def test_the_marks_are_on_the_lines_of_what_was_copied() -> None:
    text = draft_node_spec(seen("hgx-h100"))
    mark = "  # review: taken from hgx-h100, not read on this node"
    for wanted in ("  services: [nvidia-", "  sysctls: {", "  gpu_temperature: {value: 85", "owner: hardware"):
        assert [line.endswith(mark) for line in text.splitlines() if line.startswith(wanted)] == [True]
    for read in ("driver: ", "  pcie_width: {", "  kernel: 6", "- {name: mlx5_0", "firmware: "):
        assert ["# review" in line for line in text.splitlines() if line.startswith(read)] == [False]


def test_a_bundle_without_parts_fits_no_node() -> None:
    observed = seen("hgx-h100", present=False)
    empty = {name: bundle.model_copy(update={"components": []}) for name, bundle in FLEET.bundles.items()}
    text = draft_node_spec(ObservedNode(observed.evidence, observed.node, None, empty))
    assert "# review: the node runs no bundle of specs/firmware as a whole\n# firmware:" in text


def test_a_text_of_several_lines_keeps_its_marks_outside() -> None:
    spec = FLEET.node_specs["hgx-h100"].model_copy(update={"description": "one:\n\ntwo"})
    observed = seen("hgx-h100")
    text = draft_node_spec(ObservedNode(observed.evidence, observed.node, spec, FLEET.bundles))
    assert accepted(text).description == "one:\n\ntwo"


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = [step for name in tree for step in _leaves(tree[name], (*path, name))] if isinstance(tree, dict) else []
    return [path, *below] if path else below


PATHS = _leaves(recorded("hgx-h100")["channels"])
ODD = (None, True, 0, -1, 10**400, 1e308, "", "²", "\x00", [], ["x"], [None], {}, {"x": {}}, {"absent": "gone"})
leaf = st.sampled_from(
    [{"absent": "gone"}, {"unsupported": "never"}, {"failed": "lost"}, *ODD, *({"value": odd} for odd in ODD)]
)


@example([(("probe", "pci", "0000:9d:00.0", "iommu", "value"), {"absent": "gone"})], False)
@given(st.lists(st.tuples(st.sampled_from(PATHS), leaf), max_size=6), st.booleans())
def test_whatever_was_not_read_the_draft_can_be_read(damage: list[tuple[tuple[str, ...], Any]], present: bool) -> None:
    document = recorded("hgx-h100")
    for (*above, last), stands in damage:
        tree = document["channels"]
        for step in above:
            tree = tree.get(step, {}) if isinstance(tree, dict) else {}
        if isinstance(tree, dict) and last in tree:
            tree[last] = copy.deepcopy(stands)  # a later damage may lie in this one
    text = draft_node_spec(seen("hgx-h100", present=present, document=document), ["hca_rate", "idle"])
    plain = parse_yaml(text.encode(), "draft.yaml").data
    assert plain["kind"] == "NodeSpec"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_command_prints_the_draft_of_the_last_evidence(fleet: Path) -> None:
    latest = fleet / ".assay" / "evidence" / "latest" / "n0003.json"
    latest.parent.mkdir(parents=True)
    latest.write_text(json.dumps(recorded("hgx-h100")))
    answer = CliRunner().invoke(specs_app, ["learn", "n0003", "--fleet", str(fleet)])
    assert answer.exit_code == 0, answer.output
    declared = FLEET.node_specs["hgx-h100"]
    assert add_what_people_say(accepted(answer.stdout), declared) == declared


@pytest.mark.parametrize(
    ("part", "golden"),
    [("training", "gpt"), ("training_data_parallel", "data-parallel"), ("training_tensor_parallel", "tensor-parallel"),
     ("site_training", "site")],
)  # fmt: skip
def test_golden_digests_of_the_example_are_what_two_nodes_trained_alike(part: str, golden: str, fleet: Path) -> None:
    for node in ("n0003", "n0004"):
        latest = fleet / ".assay" / "evidence" / "latest" / f"{node}.json"
        latest.parent.mkdir(parents=True, exist_ok=True)
        document = json.dumps({**recorded("hgx-h100"), "node": node})
        latest.write_text(document.replace("A520112X4400003", f"A520112X44000{node[-2:]}"))
    words = ["learn", "--golden", "--part", part, "n0003", "n0004", "--fleet", str(fleet)]
    answer = CliRunner().invoke(specs_app, words)
    assert isinstance(answer.exception, AssayError)
    assert answer.exception.what == "n0003 and n0004 have one vote: the same GPU answers for both"
    latest.write_text(latest.read_text().replace("GPU-", "GPU-of-another-"))
    answer = CliRunner().invoke(specs_app, words)
    assert answer.exit_code == 0, answer.output
    draft, kept = yaml.safe_load(answer.stdout), FLEET.golden_digests[f"lab-h100-{golden}"]
    assert (draft["digests"], draft["computed_by"]) == (kept.digests, kept.computed_by.model_dump())


def test_a_part_without_digests_cannot_be_golden(fleet: Path) -> None:
    words = ["learn", "--golden", "--part", "gpu_burn", "n0003", "n0004", "--fleet", str(fleet)]
    answer = CliRunner().invoke(specs_app, words)
    assert isinstance(answer.exception, AssayError)
    assert answer.exception.what == "there is no part with digests gpu_burn"


@pytest.mark.parametrize(
    ("node", "what", "fix"),
    [
        ("n0003", "there is no evidence of n0003", "run: assay observe n0003"),
        ("n9999", "there is no node n9999", "known: n0001, n0002, n0003, n0004, n0005, n0006, n0007, and 13 more"),
    ],
)
def test_without_evidence_there_is_nothing_to_learn(node: str, what: str, fix: str, fleet: Path) -> None:
    answer = CliRunner().invoke(specs_app, ["learn", node, "--fleet", str(fleet)])
    assert isinstance(answer.exception, AssayError)  # `assay` prints it and exits with 2
    assert (answer.exception.what, answer.exception.fix) == (what, fix)


def test_golden_digests_can_go_straight_into_the_folder_of_specs(fleet: Path) -> None:
    (fleet / "specs/golden/new.yaml").touch()  # as the shell does for `> specs/golden/new.yaml`, before assay starts
    answer = CliRunner().invoke(specs_app, ["learn", "--golden", "n0003", "n0004", "--fleet", str(fleet)])
    assert isinstance(answer.exception, AssayError)
    assert answer.exception.what == "there is no evidence of n0003"


def test_adapters_on_ethernet_bring_their_settings_and_are_no_front_end():
    learned = accepted(draft_node_spec(seen("hgx-h100-roce", present=False)))
    assert learned.roce == FLEET.node_specs["hgx-h100-roce"].roce
    assert [nic.name for nic in learned.nics] == ["eth0", "eth1"]
    odd = recorded("hgx-h100-roce")
    odd["channels"]["probe"]["hca"]["mlx5_4"]["roce"]["qos"]["pfc"] = {"value": []}
    assert "review: the adapters differ" in draft_node_spec(seen("hgx-h100-roce", document=odd))
    assert accepted(draft_node_spec(seen("hgx-h100", present=False))).roce is None
