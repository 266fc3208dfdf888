"""What the load tools of a healthy virtual node find, by GPU and adapter in slot order: the key `load` of its state.

| key | meaning |
|---|---|
| tensor_gflops | speed of each GPU on tensor cores: ubergemm, dcgmproftester, gpu-fryer |
| host_copy_gb_s peer_copy_gb_s | copies of each GPU: nvbandwidth |
| diagnosis | what `dcgmi diag` says of a GPU: `{"3": {"memory": "a mismatch"}}` |
| write_gbps | speed of each adapter, by name: ib_write_bw |
| intact | whether drives keep what is written to them: fio |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.lab.node.healthy_devices import spec_limit

if TYPE_CHECKING:  # a node's shell starts often: it does without pydantic
    from assay.model.specs.node.node_spec import NodeSpec

ABOVE = 1.08
"""Healthy speeds are so far above their limits; each further GPU is a little slower."""


def make_healthy_load(spec: NodeSpec) -> dict[str, Any]:
    """Return the key `load` of a healthy node of a spec."""
    slots = range(spec.gpus.count)

    def alike(limit: str, otherwise: float, digits: int) -> list[float]:
        best = ABOVE * max(spec_limit(spec, name, otherwise) for name in limit.split())
        return [round(best * (1 - 0.0005 * slot), digits) for slot in slots]

    return {
        "tensor_gflops": alike("gpu_tensor_speed gpu_fryer_speed", 715_000, 0),
        "host_copy_gb_s": alike("gpu_host_copy", 48, 2),
        "peer_copy_gb_s": alike("gpu_peer_copy", 335, 2),
        "diagnosis": {},
        "write_gbps": {hca.name: round(1.03 * spec_limit(spec, "hca_write", 380), 2) for hca in spec.hcas},
        "intact": True,
    }
