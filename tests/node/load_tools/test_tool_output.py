"""What burn-in tools print is read as it is: a tool that says OK without having worked is not believed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.load_tools.fio import parse_fio_read
from assay.node.load_tools.nccl import parse_all_reduce
from assay.node.load_tools.stress_tools import parse_gpu_burn, parse_stress_ng
from assay.node.load_tools.tool_call import ToolOutput


def read_fio(text: str) -> Any:
    return parse_fio_read(ToolOutput("fio", 0, text))


def read_burn(text: str) -> Any:
    return parse_gpu_burn(ToolOutput("gpu_burn", 0, text))


HALF = "     time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root{HALF}{HALF}\n"


def nccl(rows: str, summary: str = "0 OK", average: str = "470.123") -> str:
    end = f"# Out of bounds values : {summary}\n# Avg bus bandwidth    : {average}\n#\n"
    return f"# nThread 1 nGpus 8\n{HEADER}{rows}{end}"


def row(wrong: str = "0", in_place: str = "0") -> str:
    out, into = f"31981  268.60  470.05 {wrong:>6}", f"31975  268.65  470.13 {in_place:>6}"
    return f"  8589934592    2147483648     float     sum      -1    {out}    {into}\n"


def burn(errors: str, *verdicts: str, rates: tuple[str, ...] = ("48022", "47820")) -> str:
    work = " - ".join(f"{'-1' if rate == '0' else '2800'} ({rate} Gflop/s)" for rate in rates)
    judged = "".join(f"\tGPU {index}: {verdict}\n" for index, verdict in enumerate(verdicts))
    return (
        f"GPU 0: NVIDIA H100 (UUID: GPU-1)\n\r50.0%  proc'd: 10 (1 Gflop/s) - 10 (1 Gflop/s)   errors: 0 - 0 \n"
        f"\r100.0%  proc'd: {work}   errors: {errors}   temps: 60 C - 61 C \nKilling processes.. done\n\n"
        f"Tested {len(verdicts)} GPUs:\n{judged}"
    )


def fio(error: int = 0, bytes_per_s: int = 6_700_000_000) -> str:
    return json.dumps({"fio version": "fio-3.33", "jobs": [{"error": error, "read": {"bw_bytes": bytes_per_s}}]})


class TestAllReduce:
    def test_average_bandwidth_and_wrong_elements(self) -> None:
        assert parse_all_reduce(nccl(row() + row())) == {
            "bus_bandwidth_gb_s": {"value": 470.123},
            "wrong": {"value": 0},
        }

    def test_wrong_elements_of_all_sizes_out_of_place_and_in_place_add_up(self) -> None:
        assert parse_all_reduce(nccl(row("3") + row("0", "4"), "7 FAILED"))["wrong"] == {"value": 7}

    def test_the_summary_counts_even_where_the_rows_say_nothing_is_wrong(self) -> None:
        assert parse_all_reduce(nccl(row(), "248 FAILED"))["wrong"] == {"value": 248}

    def test_mpiruns_tags_are_taken_off(self) -> None:
        tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in nccl(row("2"), "2 FAILED").splitlines())
        assert parse_all_reduce(tagged) == {"bus_bandwidth_gb_s": {"value": 470.123}, "wrong": {"value": 2}}

    def test_results_that_were_not_checked_are_not_right(self) -> None:
        assert "not checked" in parse_all_reduce(nccl(row("N/A", "N/A")))["wrong"]["failed"]

    def test_a_run_that_broke_off_failed_with_its_last_words(self) -> None:
        tree = parse_all_reduce(f"{HEADER}node: Test NCCL failure common.cu:1015 'unhandled cuda error'\n")
        assert "unhandled cuda error" in tree["bus_bandwidth_gb_s"]["failed"]
        assert "failed" in tree["wrong"]


class TestGpuBurn:
    def test_every_gpu_has_its_verdict_and_its_rate(self) -> None:
        assert read_burn(burn("0 - 0", "OK", "OK")) == {
            "0": {"ok": {"value": True}, "gflops": {"value": 48022.0}},
            "1": {"ok": {"value": True}, "gflops": {"value": 47820.0}},
        }

    def test_a_faulty_gpu_is_not_ok(self) -> None:
        tree = read_burn(burn("0 - 312  (WARNING!)", "OK", "FAULTY"))
        assert (tree["0"]["ok"], tree["1"]["ok"]) == ({"value": True}, {"value": False})

    def test_a_gpu_that_died_is_faulty_and_did_nothing(self) -> None:
        tree = read_burn(burn("-533715488  (DIED!)- 0", "FAULTY", "OK", rates=("0", "47820")))
        assert tree["0"] == {"ok": {"value": False}, "gflops": {"value": 0.0}}

    def test_ok_without_work_is_no_ok(self) -> None:
        tree = read_burn(burn("0 - 0", "OK", "OK", rates=("0", "47820")))
        assert "did no work" in tree["0"]["failed"]

    def test_ok_without_any_progress_line_is_no_ok(self) -> None:
        assert "reports work on 0" in read_burn("Tested 1 GPUs:\n\tGPU 0: OK\n")["failed"]

    def test_no_verdict_is_a_failure_to_know(self) -> None:
        assert "no verdict" in read_burn("Couldn't init a GPU test: CUDA_ERROR_NO_DEVICE\n")["failed"]


class TestFio:
    def test_bytes_per_second_become_megabytes(self) -> None:
        assert read_fio(fio()) == {"value": 6700.0}

    def test_warnings_before_the_document_are_skipped(self) -> None:
        assert read_fio("fio: terse version\n" + fio()) == {"value": 6700.0}

    @pytest.mark.parametrize(("error", "bytes_per_s"), [(5, 0), (5, 900), (0, 0)])
    def test_a_read_that_erred_or_read_nothing_failed(self, error: int, bytes_per_s: int) -> None:
        assert "failed" in read_fio(fio(error, bytes_per_s))

    @pytest.mark.parametrize("text", ["", "fio: not found", "{}", '{"jobs": []}', '{"jobs": [{"error": null}]}', "{["])
    def test_anything_else_failed(self, text: str) -> None:
        assert "failed" in read_fio(text)


def stress_ng(*lines: str, exit_code: int = 0, end: str = "successful") -> Any:
    log = "".join(f"stress-ng: {line}\n" for line in (*lines, f"info:  [1] {end} run completed in 2.01s"))
    return parse_stress_ng(ToolOutput("stress-ng", exit_code, "", log))


class TestMemory:
    WORK = "metrc: [1] vm                56665     10.39      1.10      1.37      5452.99       22968.69"
    NO_WORK = "metrc: [1] vm                    0     15.07      0.00      0.00         0.00           0.00"

    def test_a_clean_run_has_no_errors(self) -> None:
        assert stress_ng("info:  [1] dispatching hogs: 4 vm", self.WORK) == {"errors": {"value": 0}}

    def test_a_run_that_verified_nothing_is_no_result(self) -> None:
        for lines in ([self.NO_WORK], []):
            assert "verified nothing: 0 operations" in stress_ng(*lines)["failed"]

    def test_bits_are_added_up(self) -> None:
        bad = "fail:  [2] vm: detected 523 bit errors while stressing memory"
        one = "fail:  [3] vm: detected 1 bit error while stressing memory"
        assert stress_ng(bad, one, self.WORK, exit_code=2, end="unsuccessful") == {"errors": {"value": 524}}

    def test_a_failure_that_counts_no_bits_counts_as_one(self) -> None:
        assert stress_ng("fail:  [2] vm: something else") == {"errors": {"value": 1}}

    def test_an_unsuccessful_run_without_a_reason_is_not_clean(self) -> None:
        assert "failed" in stress_ng(self.WORK, end="unsuccessful")
        assert "exit code 3" in stress_ng(self.WORK, exit_code=3)["failed"]

    def test_a_run_that_was_killed_is_not_clean(self) -> None:
        for text, reason in (("stress-ng: info:  [1] dispatching hogs: 4 vm\n", "did not complete"), ("", "nothing")):
            assert reason in parse_stress_ng(ToolOutput("stress-ng", 0, text))["failed"]


def leaves(tree: Any) -> list[Any]:
    if parse_reading(tree) is not None:
        return [tree]
    return [leaf for branch in tree.values() for leaf in leaves(branch)]


def read_stress_ng(text: str) -> Any:
    return parse_stress_ng(ToolOutput("stress-ng", 0, text))


@pytest.mark.parametrize("reader", [parse_all_reduce, read_burn, read_fio, read_stress_ng])
@given(text=st.text() | st.text(alphabet="01 -.()GPU:OKFAULTY{}[]\"\n#/sproc'd"))
def test_garbage_is_failed_and_never_raises(reader: Any, text: str) -> None:
    assert all("failed" in leaf for leaf in leaves(reader(text))) or "GPU" in text


@pytest.mark.parametrize(
    ("reader", "good"),
    [(parse_all_reduce, nccl(row())), (read_burn, burn("0 - 0", "OK", "OK")), (read_fio, fio())],
)
@given(cut=st.integers(0, 2000), junk=st.text(max_size=20))
def test_a_good_output_cut_and_spoiled_anywhere_never_raises(reader: Any, good: str, cut: int, junk: str) -> None:
    assert leaves(reader(good[:cut] + junk + good[cut:]))
    assert leaves(reader(good[:cut]))
