"""The adapter `kubernetes`, which the inventory variable `workloads` names; `kubernetes` says which cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import ValidationError

from assay.actions.kubernetes_workloads.budgets import Budgets
from assay.actions.kubernetes_workloads.cluster import Cluster, Object, connected
from assay.actions.kubernetes_workloads.cordoning import close, open_again, read
from assay.actions.kubernetes_workloads.evict import evict_all
from assay.actions.kubernetes_workloads.node import cordon_of
from assay.actions.kubernetes_workloads.pod import is_customers, job_of
from assay.actions.kubernetes_workloads.refused import Question
from assay.actions.kubernetes_workloads.spare import SpareTime, sweep_seen
from assay.actions.workloads import Job, Spare, Standing, named
from assay.fleet.kubernetes_cluster import KubernetesCluster
from assay.model.errors import Trouble

AT_ONCE = 8

RUNNING = "status.phase!=Succeeded,status.phase!=Failed"


class KubernetesWorkloads:
    """One cluster, built from a node's inventory variables. Adapters of one cluster are equal.

    `patience_s` is for how long `drain` asks again for pods that a PodDisruptionBudget keeps.
    """

    places = True

    def __init__(self, variables: Mapping[str, Any], patience_s: float = 20.0) -> None:
        try:
            self.settings = KubernetesCluster.model_validate(variables.get("kubernetes") or {})
        except ValidationError as wrong:
            said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors())
            raise Trouble(f"the inventory variable `kubernetes` makes no sense: {said}") from None
        self.patience_s = patience_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KubernetesWorkloads) and other.settings == self.settings

    def __hash__(self) -> int:
        return hash(self.settings)

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Return the customers' pods on the node, and what keeps each of them there."""
        pods = self._pods_on(node)
        if not pods:
            read(self._cluster, node)  # a node that is not known has no pods either
        return self._jobs(pods)

    def cordoned(self, node: str) -> str:
        """Return the reason of the cordon that stands, ours with who else has closed the node, or ""."""
        return cordon_of(read(self._cluster, node))

    def cordon(self, node: str, reason: str) -> None:
        """Cordon the node. Where it is unschedulable already that stays as it is, and our taint stands beside it."""
        close(self._cluster, read(self._cluster, node), reason, "cordoned")

    def uncordon(self, node: str) -> None:
        """Take our taint off, and make the node schedulable if it was us who made it otherwise."""
        open_again(self._cluster, read(self._cluster, node))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node; with `now` evict the customers' pods, as far as their PodDisruptionBudgets allow.

        Raises Trouble that names those that are kept: whoever wants them gone has to ask again.
        """
        there = [pod for pod in self._pods_on(node) if self._is_customers(pod)]
        close(self._cluster, read(self._cluster, node), reason, "draining", named(self._jobs(there)))
        pods = [pod for pod in self._pods_on(node) if self._is_customers(pod)] if now else []
        if now and (kept := evict_all(self._cluster, pods, self.patience_s)):
            what = f"{len(kept)} of {len(pods)} pods may not be evicted now: {named(self._jobs(kept))}"
            raise Trouble(what, where=node, fix="somebody has to move what the budget protects")

    def standings(self, nodes: Collection[str]) -> dict[str, Standing]:
        """Return how the nodes stand: one list of nodes, one of pods, and one of budgets where there are pods."""
        if not nodes:
            return {}
        known = self._nodes(nodes)
        on: dict[str, list[Object]] = defaultdict(list)
        for pod in self._pods(f"spec.nodeName{f'={min(nodes)}' if len(nodes) == 1 else '!='},{RUNNING}"):
            on[pod["spec"]["nodeName"]].append(pod)
        customers = {name: [pod for pod in on[name] if self._is_customers(pod)] for name in nodes if name in known}
        budgets = self._budgets(any(customers.values()))
        return {
            name: Standing(tuple(job_of(pod, budgets.keeps(pod), known[name]) for pod in pods), cordon_of(known[name]))
            for name, pods in customers.items()
        }

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon each node, several at once. Raises Trouble that names those that could not be, after all others."""
        known = self._nodes(reasons) if reasons else {}

        def one(name: str) -> str:
            try:
                close(self._cluster, known.get(name) or read(self._cluster, name), reasons[name], "cordoned")
            except Trouble as trouble:
                return f"{name}: {trouble.what}"
            return ""

        with ThreadPoolExecutor(AT_ONCE) as threads:
            wrong = [said for said in threads.map(one, reasons) if said]
        if wrong:
            raise Trouble(f"{len(wrong)} of {len(reasons)} nodes could not be cordoned: {'; '.join(wrong)}")

    def spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> Spare:
        """Run a command in a pod of the lowest priority on a node that no customer uses."""
        if jobs := self.jobs(node):
            return Spare(None, yielded=named(jobs))
        return SpareTime(self._cluster, self.settings, node).run(command, given, deadline_s)

    @property
    def _cluster(self) -> Cluster:
        return connected(self.settings)

    def _is_customers(self, pod: Object) -> bool:
        return is_customers(pod, self.settings.namespace)

    def _jobs(self, pods: Iterable[Object]) -> tuple[Job, ...]:
        mine = [pod for pod in pods if self._is_customers(pod)]
        budgets = self._budgets(bool(mine))
        return tuple(job_of(pod, budgets.keeps(pod)) for pod in mine)

    def _pods_on(self, node: str) -> list[Object]:
        return self._pods(f"spec.nodeName={node},{RUNNING}")

    def _pods(self, fields: str) -> list[Object]:
        """Return pods as they are now, not as the API server has them at hand: a node is emptied by what they tell."""
        call = self._cluster.core.list_pod_for_all_namespaces
        pods = self._cluster.every(Question("list", "pods"), call, field_selector=fields)
        sweep_seen(self._cluster, pods, self.settings.namespace)
        return pods

    def _nodes(self, names: Collection[str]) -> dict[str, Object]:
        """Return the nodes that the cluster knows of that name, or all that it knows where several are asked for."""
        fields = {"field_selector": f"metadata.name={min(names)}"} if len(names) == 1 else {}
        nodes = self._cluster.every(Question("list", "nodes"), self._cluster.core.list_node, **fields)
        return {node["metadata"]["name"]: node for node in nodes}

    def _budgets(self, wanted: bool) -> Budgets:
        """Return every budget, as the API server has them at hand: they only explain. None are asked for in vain."""
        if not wanted:
            return Budgets([])
        call = self._cluster.policy.list_pod_disruption_budget_for_all_namespaces
        question = Question("list", "poddisruptionbudgets")
        return Budgets(self._cluster.ask(question, call, resource_version="0")["items"])
