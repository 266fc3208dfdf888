"""The picture shows the part concerned, and every cable of it that is not as designed."""

from xml.etree import ElementTree

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.fabric_drawing import draw_fabric
from assay.fabric.fabric_picture import FabricPicture
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tree():
    return fat_tree(units=2, nodes=12, rails=3)


def drawn(tree, cables, around=""):
    found = compare_cabling(tree, in_reach(tree, cables)).discrepancies
    return ElementTree.fromstring(draw_fabric(FabricPicture(tree, found, around)))


def names(svg, kind=""):
    return {text.text for group in svg.iter(f"{SVG}g") if kind in group.get("class")
            for text in group.iter(f"{SVG}text") if text.get("class") == "name"}  # fmt: skip


def lines(svg, kind):
    return [group.find(f"{SVG}title").text for group in svg.iter(f"{SVG}g")
            if kind in group.get("class").split() and group.find(f"{SVG}path") is not None]  # fmt: skip


def turned(line):
    """The line's description, with the switch first."""
    pair, _, words = line.partition(": ")
    return f"{' – '.join(sorted(pair.split(' – ')))}: {words}"


def test_a_lost_cable_and_a_misplaced_one_is_red(tree):
    cables = as_built(tree)
    cables[0], cables[1] = cables[0]._replace(b=cables[1].b), cables[1]._replace(b=cables[0].b)
    svg = drawn(tree, cables[:-1])
    wrong = "1 of 1 wrong"
    assert {f"leaf-0-{rail} – n000: {wrong}" for rail in (0, 1)} <= {turned(line) for line in lines(svg, "bad")}
    assert lines(svg, "gone") == []
    assert "leaf-0-5 – spine-0-1: 1 of 2 wrong" in map(turned, lines(svg, "bad"))
    assert {"n000", "leaf-0-0", "leaf-0-1", "leaf-0-5", "spine-0-1"} <= names(svg)


def test_a_dead_node_is_red(tree):
    dead = {guid for guid, device in tree.devices.items() if device.node == "n003"}
    svg = drawn(tree, [cable for cable in as_built(tree) if cable.a.guid not in dead])
    assert names(svg, "bad") == {"n003"}
    assert len(lines(svg, "gone")) == 3


def test_words_beside_many_broken_lines_are_left_to_their_titles(tree):
    leaf = next(guid for guid, device in tree.devices.items() if device.name == "leaf-0-0")
    few = drawn(tree, as_built(tree)[:-1])
    many = drawn(tree, [cable for cable in as_built(tree) if leaf not in (cable.a.guid, cable.b.guid)])
    for svg, words in ((few, 1), (many, 0)):
        assert sum(text.text.endswith("wrong") for text in svg.iter(f"{SVG}text")) == words
    assert len(lines(many, "gone")) == 14


def test_around_a_leaf_are_its_nodes_and_spines_and_how_many_are_left_out(tree):
    svg = drawn(tree, as_built(tree), "leaf-0-4")
    assert {f"n0{n}" for n in range(12, 24)} | {"leaf-0-4", "spine-0-0", "spine-0-1"} <= names(svg)
    assert "n000" not in names(svg)
    assert "+ 12 more" in {text.text for text in svg.iter(f"{SVG}text")}
    assert not lines(svg, "bad")


def test_a_port_shows_both_of_its_ends(tree):
    svg = drawn(tree, as_built(tree), "spine-0-1[1/1]")
    assert "spine-0-1" in names(svg)


def test_names_are_escaped():
    tree = fat_tree()
    odd = tree.__class__("x<y", [device._replace(name=f"<{device.name}>") for device in tree], tree.links)
    assert ElementTree.fromstring(draw_fabric(FabricPicture(odd))).get("aria-label").startswith("x<y")


def test_what_could_not_be_read_stands_below_the_picture(tree):
    remarks = [f"note: <line {number}> {'x' * 900}" for number in range(6)]
    svg = ElementTree.fromstring(draw_fabric(FabricPicture(tree, remarks=remarks)))
    told = [text for text in svg.iter(f"{SVG}text") if text.get("class") == "remark"]
    assert [text.text[:15] for text in told] == [*(f"note: <line {number}> " for number in range(4)), "and 2 more rema"]
    width, height = map(int, svg.get("viewBox").split()[2:])
    assert all(int(text.get("y")) < height and 7 * len(text.text) < width for text in told)
