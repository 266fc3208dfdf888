"""Racks whose nodes work as one machine are complete, and their nodes are alike."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("gpu.missing")
def test_whole_rack_answers(whole_rack, spec, measure):
    """Count the nodes and GPUs of the rack: it works as one NVLink machine, so none may be missing."""
    measure("nodes", len([node.host.boot_id for node in whole_rack.nodes]), equals=spec.rack.nodes)
    measure("gpus", sum(len(node.gpus) for node in whole_rack.nodes), equals=spec.rack.gpus)


@pytest.mark.fault("host.config.drift")
def test_whole_rack_runs_one_driver(whole_rack):
    """Check that all nodes run one driver version: only equal drivers share memory across the rack."""
    drivers = sorted({node.gpu.driver for node in whole_rack.nodes})
    assert len(drivers) == 1, f"the nodes run the drivers {' and '.join(drivers)}"


@pytest.mark.fault("gpu.fabric")
def test_whole_rack_is_one_fabric(whole_rack):
    """Check that all GPUs of the rack are in one NVLink cluster and one clique."""
    gpus = [gpu for node in whole_rack.nodes for gpu in node.gpus]
    fabrics = sorted({f"{gpu.fabric.cluster} clique {gpu.fabric.clique}" for gpu in gpus})
    assert len(fabrics) == 1, f"the GPUs are in {' and in '.join(fabrics)}"


@pytest.mark.fault("gpu.fabric")
def test_whole_rack_fabric_is_healthy(whole_rack):
    """Check that every GPU reports a healthy NVLink fabric."""
    health = {str(gpu.subject): gpu.fabric.health.summary for node in whole_rack.nodes for gpu in node.gpus}
    sick = [f"{gpu} says {summary}" for gpu, summary in health.items() if summary != "healthy"]
    assert not sick, "; ".join(sick)
