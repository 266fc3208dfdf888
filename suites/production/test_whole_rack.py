"""Racks whose nodes work as one machine: all of it is there, and all of it is the same."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("gpu.missing")
def test_whole_rack_answers(whole_rack, spec, measure):
    """Count the nodes and the GPUs of the rack: NVLink reaches across it, so a part of it is none."""
    measure("nodes", len([node.host.boot_id for node in whole_rack.nodes]), equals=spec.rack.nodes)
    measure("gpus", sum(len(node.gpus) for node in whole_rack.nodes), equals=spec.rack.gpus)


@pytest.mark.fault("host.config.drift")
def test_whole_rack_runs_one_driver(whole_rack):
    """Find one driver version on all nodes: memory is shared across the rack only between equal drivers."""
    drivers = sorted({node.gpu.driver for node in whole_rack.nodes})
    assert len(drivers) == 1, f"the nodes run the drivers {' and '.join(drivers)}"


@pytest.mark.fault("gpu.fabric")
def test_whole_rack_is_one_fabric(whole_rack):
    """Find one NVLink cluster and one clique on all GPUs of the rack."""
    gpus = [gpu for node in whole_rack.nodes for gpu in node.gpus]
    fabrics = sorted({f"{gpu.fabric.cluster} clique {gpu.fabric.clique}" for gpu in gpus})
    assert len(fabrics) == 1, f"the GPUs are in {' and in '.join(fabrics)}"


@pytest.mark.fault("gpu.fabric")
def test_whole_rack_fabric_is_healthy(whole_rack):
    """Hear of every GPU that its NVLink fabric is healthy."""
    health = {str(gpu.subject): gpu.fabric.health.summary for node in whole_rack.nodes for gpu in node.gpus}
    sick = [f"{gpu} says {summary}" for gpu, summary in health.items() if summary != "healthy"]
    assert not sick, "; ".join(sick)
