"""Golden digests: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import Case


def golden(name: str = "ours", gpu: str = "H100", digest: str = "9f3a01bc", driver: str = "1") -> dict[str, str | None]:
    key = f"{{gpu: {gpu}, driver: '{driver}', engine: jax, backend: cuda, runtime: '', program: abc}}"
    head = f"kind: GoldenDigests\nname: {name}\nowner: us\nsources: [us]\ncomputed_by: {key}\nnodes: [n1, n2]\n"
    return {f"specs/{name}.yaml": f"{head}digests:\n  gemm: {{'0': ['{digest}']}}\n"}


CASES: dict[str, Case] = {
    "ASY0330": Case(golden(gpu="H1OO"), golden(), "specs/ours.yaml:5:15"),
    "ASY0331": Case(
        {**golden(), **golden("theirs", digest="00000000")},
        {**golden(), **golden("theirs", digest="00000000", driver="2")},
        "specs/theirs.yaml:8:3",
    ),
}
