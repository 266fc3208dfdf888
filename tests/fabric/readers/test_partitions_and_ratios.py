"""P_Key tables, bit error ratios and temperatures of devices: what the readers take from them, and what they refuse."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.discovery import PortFacts, merge_port_facts
from assay.fabric.health import counters
from assay.fabric.readers import ibdiagnet_csv, smpquery
from assay.fabric.readers.format_detection import read_tool_output
from assay.model.specs.fabric.cable import PortId

RECORDINGS = Path(__file__).parent / "recordings"
SMPQUERY = (RECORDINGS / "smpquery.txt").read_text()
DB_CSV = (RECORDINGS / "db_csv.txt").read_text()
LEAF, SPINE = "0xb83f000000001000", "0xb83f000000002000"
ADAPTERS = [PortId(f"0xa088000000000{number}00", 1) for number in range(3)]


def test_a_partition_table_belongs_to_the_port_before_it():
    found = smpquery.parse(SMPQUERY)
    assert found.problems == ()
    assert found.facts[ADAPTERS[0]].pkeys == {0x7FFF, 0x8012}
    assert found.facts[PortId(LEAF, 1)].pkeys is None, "nobody asked that port"


def test_a_partition_table_alone_does_not_say_whose_it_is():
    found = read_tool_output(SMPQUERY[SMPQUERY.index("   0: 0x7fff") :])
    assert "the port of these P_Keys is not known" in found.problems[0]
    assert found.facts == {}


@pytest.mark.parametrize("lost", ["   0: 0x7fff 0x8012", "   8: 0x0000", "  56: 0x0000", "64 pkeys capacity"])
def test_a_partition_table_that_lost_a_line_tells_nothing(lost):
    found = smpquery.parse("".join(line for line in SMPQUERY.splitlines(keepends=True) if not line.startswith(lost)))
    assert any("were cut off" in problem for problem in found.problems)
    assert found.facts[ADAPTERS[0]].pkeys is None


def test_a_second_table_after_one_port_belongs_to_nobody():
    found = smpquery.parse(SMPQUERY + SMPQUERY[SMPQUERY.index("   0: 0x7fff") :])
    assert any("were cut off" in problem for problem in found.problems)


def test_a_port_in_no_partition_is_not_a_port_that_nobody_asked():
    found = smpquery.parse(SMPQUERY.replace("0x7fff 0x8012", "0x0000 0x8000"))
    assert (found.problems, found.facts[ADAPTERS[0]].pkeys) == ((), frozenset())
    here = PortFacts(ADAPTERS[0])
    assert merge_port_facts([here, found.facts[ADAPTERS[0]], here])[ADAPTERS[0]].pkeys == frozenset()


def test_db_csv_tells_partitions_by_key_and_membership():
    facts = ibdiagnet_csv.parse_db_csv(DB_CSV).facts
    assert [facts[port].pkeys for port in ADAPTERS] == [{0x7FFF, 0x8012}, {0x7FFF, 0x0012}, {0x7FFF}]
    assert facts[PortId(LEAF, 1)].pkeys is None


def test_db_csv_tells_how_a_port_keeps_its_m_key_and_never_the_key():
    header, bits = "NodeGuid,PortGuid,PortNum,LID,", {ADAPTERS[0]: 1, ADAPTERS[1]: 0}
    text = DB_CSV.replace(f"START_PORTS\n{header}", f"START_PORTS\nMKey,MKeyProtBits,{header}")
    ports = text[text.index("START_PORTS") : text.index("END_PORTS")]
    rows = [
        f"0x5ec2e7,{bits.get(PortId(row.split(',')[0], int(row.split(',')[2])), 'N/A')},{row}"
        for row in ports.splitlines()[2:]
    ]
    found = ibdiagnet_csv.parse_db_csv(text.replace(ports, "\n".join([*ports.splitlines()[:2], *rows, ""])))
    assert found.problems == ()
    assert [found.facts[port].m_key_protect for port in ADAPTERS] == [1, 0, None]
    assert "5ec2e7" not in repr(found)
    closed, open_now = PortFacts(ADAPTERS[0], m_key_protect=1), PortFacts(ADAPTERS[0], m_key_protect=0)
    assert merge_port_facts([closed, open_now, PortFacts(ADAPTERS[0])])[ADAPTERS[0]].m_key_protect == 0


def test_a_key_of_sixteen_bits_has_its_membership_in_it():
    assert ibdiagnet_csv.parse_db_csv(DB_CSV.replace("1,0x0012,1", "1,0x8012,N/A")).facts[ADAPTERS[0]].pkeys == {
        0x7FFF,
        0x8012,
    }


@pytest.mark.parametrize("row", ["1,0x18012,1", "1,0x0012,2", "1,N/A,1", "N/A,0x0012,1"])
def test_a_partition_that_cannot_be_read_is_said_and_no_table_is_whole(row):
    found = ibdiagnet_csv.parse_db_csv(DB_CSV.replace("1,0x0012,1", row))
    assert found.problems == ("section PKEY: 1 of 6 rows cannot be read",)
    assert not any(one.pkeys for one in found.facts.values()), "whose row it was is not known"


def test_db_csv_tells_the_ratios_that_registers_hold():
    facts = ibdiagnet_csv.parse_db_csv(DB_CSV).facts
    assert facts[PortId(LEAF, 1)].ber == {"raw": pytest.approx(9e-5), "effective": pytest.approx(4e-12), "symbol": 0.0}
    assert facts[PortId(LEAF, 2)].ber == {"raw": pytest.approx(2e-8)}, "what was never written is no ratio"
    assert facts[ADAPTERS[0]].ber == {}


def test_db_csv_tells_how_warm_devices_are():
    found = ibdiagnet_csv.parse_db_csv(DB_CSV)
    assert found.temperatures == {LEAF: 59.0, ADAPTERS[0].guid: 47.0}
    assert ibdiagnet_csv.parse_db_csv(DB_CSV.replace(f"{LEAF},59", f"{LEAF},warm")).problems == (
        "section TEMP_SENSING: 1 of 3 rows cannot be read",
    )


@given(mantissa=st.integers(0, 1 << 64), exponent=st.integers(0, 1 << 64))
def test_a_register_holds_a_ratio_or_nothing(mantissa, exponent):
    ratio = counters.decode_register(mantissa, exponent)
    assert ratio is None or 0 <= ratio <= 1
