"""What the inventory says of a scheduler must reach a node on which that scheduler places work."""

from __future__ import annotations

import pytest

from assay.declare.check import check_repository
from assay.declare.rules import partners
from tests.declare.rules.cases.transports_schedulers_monitoring import both, with_variables

KUBERNETES = "kubernetes: {context: hall1}"


def told(fleet):
    return [(one.where, one.message, one.fix) for one in check_repository(fleet).problems if one.code == "ASY0220"]


@pytest.mark.parametrize(
    ("variables", "message", "fix"),
    [
        ("slurm_conf: /etc/slurm.conf", "n2 has `workloads: none`, so slurm_conf has no effect", "`workloads: slurm`"),
        (
            f"workloads: slurm, {KUBERNETES}",
            "n2 has `workloads: slurm`, so kubernetes has no effect",
            "`workloads: kubernetes`",
        ),
        (
            "workloads: kubernetes, slurm_spare_partition: spare",
            "n2 has `workloads: kubernetes`, so slurm_spare_partition has no effect",
            "`workloads: slurm`",
        ),
    ],
)
def test_a_setting_of_another_scheduler_is_a_mistake_and_says_what_to_do(fleet_with, variables, message, fix):
    ((where, what, how),) = told(fleet_with(with_variables(variables)))
    assert where.startswith("inventory/pool.yml:5:")
    assert what == message
    assert how.startswith(f"write {fix}, or leave ")


def test_what_a_group_says_once_for_nodes_of_two_schedulers_is_right_where_one_of_them_reads_it(fleet_with):
    mixed = both("workloads: slurm", "workloads: kubernetes")
    everybody = {"inventory/group_vars/all.yml": f"slurm_conf: /etc/slurm.conf\n{KUBERNETES}\n"}
    assert told(fleet_with(mixed | everybody)) == []
    ((where, what, _),) = told(fleet_with(both("workloads: slurm", "workloads: none")))
    assert where == "inventory/group_vars/all.yml:2:1"
    assert what == "n1 has `workloads: slurm`, so kubernetes has no effect"


def test_a_setting_may_be_taken_back_and_an_adapter_of_somebody_else_may_read_any(fleet_with, monkeypatch):
    assert told(fleet_with(with_variables('slurm_conf: "", slurm_cordon: drain'))) == []
    monkeypatch.setattr(partners, "BUILTIN_SCHEDULERS", frozenset({"slurm", "kubernetes"}))
    assert told(fleet_with(with_variables("slurm_conf: /etc/slurm.conf"))) == []
