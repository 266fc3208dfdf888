"""Whatever form assay prints for a device or a port is also understood."""

import pytest

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.element_names import find_element
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import fat_tree


@pytest.fixture(scope="module")
def tree():
    return fat_tree()


@pytest.mark.parametrize("form", ["{}[33]", "{}[17/1]", "{} port 17/1", "{} port 17/1 (leaf-0 U1)", "{} 17/1", "{}/33"])
def test_a_port_is_known_by_its_number_and_by_its_label(tree, form):
    leaf = next(device for device in tree if device.name == "leaf-0-0")
    assert find_element(tree, form.format("leaf-0-0")).port == PortId(leaf.guid, 33)
    assert find_element(tree, form.format(leaf.guid)).port == PortId(leaf.guid, 33)


def test_every_end_that_is_printed_is_understood(tree):
    for cable in tree.cables:
        for end in cable.ends:
            assert find_element(tree, str(end)).port == end.port_id


def test_a_node_and_an_adapter_are_known(tree):
    assert find_element(tree, "n000").node == "n000"
    assert find_element(tree, "n000/mlx5_1").device.name == "n000 mlx5_1"


def test_a_name_that_several_devices_have_asks_which(tree):
    twins = [device._replace(name="leaf") if device.kind == "switch" else device for device in tree]
    with pytest.raises(AssayError, match="8 devices of the fabric both are called 'leaf'") as error:
        find_element(CompiledTopology("both", twins, tree.links), "leaf[1]")
    assert twins[-1].guid in error.value.fix


@pytest.mark.parametrize("wrong", ["", "nothing", "leaf-0-0[99]", "leaf-0-0[40/1]", "leaf-0-0[", "[1]"])
def test_anything_else_is_refused(tree, wrong):
    with pytest.raises(AssayError):
        find_element(tree, wrong)


@pytest.mark.parametrize(("wrong", "near"), [("leaf-0-9[17/1]", "leaf-0-"), ("m000", "n000")])
def test_a_misspelt_name_gets_the_nearest(tree, wrong, near):
    with pytest.raises(AssayError) as error:
        find_element(tree, wrong)
    assert f"did you mean {near}" in error.value.fix
