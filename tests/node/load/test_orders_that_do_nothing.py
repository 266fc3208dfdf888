"""assay-load refuses words with which it would compute nothing, or plant a fault nowhere, and says what to write."""

from __future__ import annotations

import io

import pytest

from assay.node.load.__main__ import parse_command_line
from assay.node.load.engine import LoadError, list_made_devices, parse_order
from assay.node.load.numpy_engine import NumpyEngine
from assay.node.load.run import run_order
from assay.node.load.run_lines import RunLines


@pytest.mark.parametrize(
    ("words", "says"),
    [("battery --seconds 0", "argument --seconds: '0': write a number of seconds above 0"),
     ("battery --seconds nan", "argument --seconds: 'nan': write a number of seconds above 0"),
     ("battery --unit-seconds -1", "argument --unit-seconds: '-1': write a number of seconds above 0"),
     ("battery --seeds -1", "argument --seeds: '-1': write a whole number from 0"),
     ("battery --devices 0", "argument --devices: '0': write a whole number from 1"),
     ("train gpt --steps 1.5", "argument --steps: '1.5': write a whole number from 0"),
     ("train gpt --nodes 0", "argument --nodes: '0': write a whole number from 1"),
     ("train gpt --nodes 2 --node 2", "--node 2: the nodes are 0 to 1, as --nodes says"),
     ("train gpt --nodes 2", "--nodes 2: add --coordinator HOST:PORT, where node 0 listens")],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parse_command_line(words.split())
    assert refused.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [("battery --tests gemm.float8", "none of these tests can run here: numpy has no 8-bit floats"),
     ("battery --tests sort --plant device=2", "--plant device=2: the run has the devices 0, 1"),
     ("battery --tests sort --plant device=1,test=gemm", "no test of the run is called so; they begin with sort"),
     ("battery --after 5", "--after 5: write SEED:TEST, such as 17:modulo.uint32"),
     ("train gpt --plant device=1,test=sort", "they begin with train"),
     ("train data-parallel", "data-parallel cannot run here: numpy has one device")],
)  # fmt: skip
def test_a_run_that_could_do_nothing_does_not_begin(words: str, says: str) -> None:
    output = io.StringIO()
    engine = NumpyEngine(list_made_devices(2, (), (), ""))
    with pytest.raises((LoadError, ValueError)) as refused:
        run_order(parse_command_line(words.split()), engine, RunLines(output))
    assert says in str(refused.value)
    assert not output.getvalue()


def test_an_order_that_names_no_places_says_what_to_write() -> None:
    with pytest.raises(ValueError, match="--order 1,x: write places, such as 3,1,0,2, or shuffled"):
        parse_order("1,x")
