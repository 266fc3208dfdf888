"""The quick way of reading says the same as reading line by line, and what differs is found without objects."""

from hypothesis import example, given
from hypothesis import strategies as st

from assay.fabric.compare.port_diff import RowDiff, diff_rows
from assay.fabric.lazy_discovery import LazyDiscovery
from assay.fabric.readers.ibnetdiscover import _line_by_line, parse
from tests.support.fabrics.recorded_fabric import COMPUTE

LEAF, ONE, TWO = "00000000000000b1", "00000000000000a1", "00000000000000a2"
DUMP = f"""\
# a comment

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xb1
switchguid=0xb1(b1)
Switch	64 "S-{LEAF}"		# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 7 lmc 0
[1]	"H-{ONE}"[1](a1) 		# "n01 mlx5_0" lid 3 4xNDR
[2][ext 17]	"H-{TWO}"[1](a2) 		# "n02 mlx5_0 " lid 4 2xHDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xa1
caguid=0xa1
Ca	1 "H-{ONE}"		# "n01 mlx5_0"
[1](a1) 	"S-{LEAF}"[1]		# lid 3 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xa2
caguid=0xa2
Ca	1 "H-{TWO}"		# "n02 mlx5_0 "
[1](a2) 	"S-{LEAF}"[2]		# lid 4 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 2xHDR
"""


def both_say_the_same(text):
    quick, slow = parse(text), _line_by_line(text, "")
    assert (quick.cables, quick.devices, quick.partial) == (slow.cables, slow.devices, slow.partial)


def test_a_flawless_text_is_read_the_quick_way():
    assert isinstance(parse(DUMP), LazyDiscovery)
    assert isinstance(parse(COMPUTE), LazyDiscovery)
    both_say_the_same(COMPUTE)


@given(st.integers(0, len(DUMP)))
def test_a_cut_text_says_the_same_either_way(length):
    both_say_the_same(DUMP[:length])


@example(DUMP.index("sysimgguid=0x") + len("sysimgguid="), "0", 0)  # a GUID that is none
@given(st.integers(0, len(DUMP) - 1), st.text('\n[]"()# \t:;x019afHSCR', max_size=6), st.integers(0, 6))
def test_a_garbled_text_says_the_same_either_way(place, garbage, length):
    both_say_the_same(DUMP[:place] + garbage + DUMP[place + length :])


@given(st.data())
def test_lost_doubled_and_exchanged_lines_say_the_same_either_way(data):
    lines = DUMP.split("\n")
    picked = data.draw(st.lists(st.sampled_from(range(len(lines))), min_size=2, max_size=2))
    lines[picked[0]] = data.draw(st.sampled_from([lines[picked[1]], "", lines[picked[0]] + "\n" + lines[picked[1]]]))
    both_say_the_same("\n".join(lines))


def rows(text):
    found = parse(text)
    assert isinstance(found, LazyDiscovery)
    return found.rows


def test_two_listings_of_the_same_are_not_apart():
    assert diff_rows(rows(DUMP), rows(DUMP)) == RowDiff([], [])


def test_what_is_apart_is_named_at_either_side():
    slower = DUMP.replace("lid 4 2xHDR", "lid 4 1xHDR")
    assert diff_rows(rows(slower), rows(DUMP)) == RowDiff(
        [(LEAF, ("2", TWO, "1", "2xHDR"))], [(LEAF, ("2", TWO, "1", "1xHDR"))]
    )


def test_a_row_printed_twice_is_strange():
    line = f'[1]\t"H-{ONE}"[1](a1) \t\t# "n01 mlx5_0" lid 3 4xNDR\n'
    assert diff_rows(rows(DUMP.replace(line, 2 * line)), rows(DUMP)) == RowDiff([], [(LEAF, ("1", ONE, "1", "4xNDR"))])


def test_a_device_that_is_not_there_lacks_all_of_its_rows():
    without = DUMP[: DUMP.rindex("vendid")]
    assert diff_rows(rows(without), rows(DUMP)).missing == [(TWO, ("1", LEAF, "2", "2xHDR"))]
    assert diff_rows(rows(DUMP), rows(without)).unexpected == [(TWO, ("1", LEAF, "2", "2xHDR"))]
