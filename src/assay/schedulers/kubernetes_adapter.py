"""The adapter `kubernetes`, which the inventory variable `workloads` names; `kubernetes` says which cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from assay.model.errors import AssayError
from assay.model.specs.node_settings import KubernetesClusterSettings, NodeSettings
from assay.schedulers.kubernetes_client import ApiRequest, KubernetesApi, KubernetesObject, connect_cluster
from assay.schedulers.kubernetes_cordon import cordon_node, describe_node_cordon, read_node, uncordon_node
from assay.schedulers.kubernetes_eviction import DisruptionBudgets, evict_pods
from assay.schedulers.kubernetes_pods import is_customer_pod, make_customer_job
from assay.schedulers.kubernetes_spare_run import KubernetesSpareRun, delete_leftover_pods
from assay.schedulers.scheduler_adapter import CustomerJob, SchedulerNodeStatus, SpareRunResult, format_jobs

PARALLEL_CORDONS = 8

RUNNING_PODS_SELECTOR = "status.phase!=Succeeded,status.phase!=Failed"


class KubernetesScheduler:
    """One cluster, built from a node's inventory variables. Adapters of one cluster are equal.

    `patience_s` is for how long `drain` asks again for pods that a PodDisruptionBudget keeps.
    """

    places_jobs = True

    def __init__(self, settings: NodeSettings, patience_s: float = 20.0) -> None:
        self.settings = settings.kubernetes or KubernetesClusterSettings()
        self.patience_s = patience_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KubernetesScheduler) and other.settings == self.settings

    def __hash__(self) -> int:
        return hash(self.settings)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the customers' pods on the node, and what keeps each of them there."""
        pods = self._pods_on(node)
        if not pods:
            read_node(self._cluster, node)  # a node that is not known has no pods either
        return self._jobs(pods)

    def read_cordon_reason(self, node: str) -> str:
        """Return the reason of the cordon that stands, ours with who else has closed the node, or ""."""
        return describe_node_cordon(read_node(self._cluster, node))

    def cordon(self, node: str, reason: str) -> None:
        """Cordon the node. Where it is unschedulable already that stays as it is, and our taint stands beside it."""
        cordon_node(self._cluster, read_node(self._cluster, node), reason, "cordoned")

    def uncordon(self, node: str) -> None:
        """Take our taint off, and make the node schedulable if it was us who made it otherwise."""
        uncordon_node(self._cluster, read_node(self._cluster, node))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node; with `now` evict the customers' pods, as far as their PodDisruptionBudgets allow.

        Raises Trouble that names those that are kept: whoever wants them gone has to ask again.
        """
        there = [pod for pod in self._pods_on(node) if self._is_customers(pod)]
        cordon_node(self._cluster, read_node(self._cluster, node), reason, "draining", format_jobs(self._jobs(there)))
        pods = [pod for pod in self._pods_on(node) if self._is_customers(pod)] if now else []
        if now and (kept := evict_pods(self._cluster, pods, self.patience_s)):
            what = f"{len(kept)} of {len(pods)} pods may not be evicted now: {format_jobs(self._jobs(kept))}"
            raise AssayError(what, where=node, fix="somebody has to move what the budget protects")

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return how the nodes stand: one list of nodes, one of pods, and one of budgets where there are pods."""
        if not nodes:
            return {}
        known = self._nodes(nodes)
        on: dict[str, list[KubernetesObject]] = defaultdict(list)
        for pod in self._pods(f"spec.nodeName{f'={min(nodes)}' if len(nodes) == 1 else '!='},{RUNNING_PODS_SELECTOR}"):
            on[pod["spec"]["nodeName"]].append(pod)
        customers = {name: [pod for pod in on[name] if self._is_customers(pod)] for name in nodes if name in known}
        budgets = self._budgets(any(customers.values()))
        return {
            name: SchedulerNodeStatus(
                tuple(make_customer_job(pod, budgets.find_blocker(pod), known[name]) for pod in pods),
                describe_node_cordon(known[name]),
            )
            for name, pods in customers.items()
        }

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon each node, several at once. Raises Trouble that names those that could not be, after all others."""
        known = self._nodes(reasons) if reasons else {}

        def one(name: str) -> str:
            try:
                cordon_node(self._cluster, known.get(name) or read_node(self._cluster, name), reasons[name], "cordoned")
            except AssayError as trouble:
                return f"{name}: {trouble.what}"
            return ""

        with ThreadPoolExecutor(PARALLEL_CORDONS) as threads:
            wrong = [said for said in threads.map(one, reasons) if said]
        if wrong:
            raise AssayError(f"{len(wrong)} of {len(reasons)} nodes could not be cordoned: {'; '.join(wrong)}")

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command in a pod of the lowest priority on a node that no customer uses."""
        if jobs := self.list_jobs(node):
            return SpareRunResult(None, preempted_by=format_jobs(jobs))
        return KubernetesSpareRun(self._cluster, self.settings, node).run(command, given, deadline_s)

    @property
    def _cluster(self) -> KubernetesApi:
        return connect_cluster(self.settings)

    def _is_customers(self, pod: KubernetesObject) -> bool:
        return is_customer_pod(pod, self.settings.namespace)

    def _jobs(self, pods: Iterable[KubernetesObject]) -> tuple[CustomerJob, ...]:
        mine = [pod for pod in pods if self._is_customers(pod)]
        budgets = self._budgets(bool(mine))
        return tuple(make_customer_job(pod, budgets.find_blocker(pod)) for pod in mine)

    def _pods_on(self, node: str) -> list[KubernetesObject]:
        return self._pods(f"spec.nodeName={node},{RUNNING_PODS_SELECTOR}")

    def _pods(self, fields: str) -> list[KubernetesObject]:
        """Return pods as they are now, not as the API server has them at hand: a node is emptied by what they tell."""
        call = self._cluster.core.list_pod_for_all_namespaces
        pods = self._cluster.list_all(ApiRequest("list", "pods"), call, field_selector=fields)
        delete_leftover_pods(self._cluster, pods, self.settings.namespace)
        return pods

    def _nodes(self, names: Collection[str]) -> dict[str, KubernetesObject]:
        """Return the nodes that the cluster knows of that name, or all that it knows where several are asked for."""
        fields = {"field_selector": f"metadata.name={min(names)}"} if len(names) == 1 else {}
        nodes = self._cluster.list_all(ApiRequest("list", "nodes"), self._cluster.core.list_node, **fields)
        return {node["metadata"]["name"]: node for node in nodes}

    def _budgets(self, wanted: bool) -> DisruptionBudgets:
        """Return every budget, as the API server has them at hand: they only explain. None are asked for in vain."""
        if not wanted:
            return DisruptionBudgets([])
        call = self._cluster.policy.list_pod_disruption_budget_for_all_namespaces
        question = ApiRequest("list", "poddisruptionbudgets")
        return DisruptionBudgets(self._cluster.request(question, call, resource_version="0")["items"])
