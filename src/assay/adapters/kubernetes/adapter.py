"""The scheduler `kubernetes`: cordons, drains and reads nodes through the official client.

The inventory variable `kubernetes` says which cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from assay.adapters.kubernetes.client import ApiRequest, KubernetesApi, KubernetesObject, connect_cluster
from assay.adapters.kubernetes.cordon import (
    cordon_node,
    describe_foreign_cordon,
    describe_foreign_taints,
    describe_node_cordon,
    find_missing_notices,
    rank_nodes,
    read_node,
    show_notices,
    uncordon_node,
    undrain_node,
)
from assay.adapters.kubernetes.jobs import (
    DisruptionBudgets,
    evict_pods,
    is_customer_pod,
    make_customer_job,
    read_budgets,
)
from assay.adapters.kubernetes.spare_run import KubernetesSpareRun, delete_leftover_pods
from assay.adapters.scheduler import CustomerJob, NodeNotice, SchedulerNodeStatus, SpareRunResult, format_jobs
from assay.model.errors import AssayError
from assay.model.specs.node_settings import KubernetesClusterSettings, NodeSettings

PARALLEL_CORDONS = 8
RUNNING_PODS_SELECTOR = "status.phase!=Succeeded,status.phase!=Failed"


class KubernetesScheduler:
    """One cluster. Adapters of the same cluster are equal.

    `patience_s` is how long `drain` tries to evict pods that a PodDisruptionBudget keeps.
    """

    places_jobs = True

    def __init__(self, settings: NodeSettings, patience_s: float = 20.0) -> None:
        self.settings, self._load = settings.kubernetes or KubernetesClusterSettings(), settings.load
        self.patience_s = patience_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KubernetesScheduler) and other.settings == self.settings

    def __hash__(self) -> int:
        return hash(self.settings)

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        """Return the customers' pods on the node, each with what prevents its eviction."""
        pods = self._list_pods_on(node)
        if not pods:
            read_node(self._cluster, node)  # raises an error for an unknown node
        return self._make_jobs(pods)

    def read_cordon_reason(self, node: str) -> str:
        """Return why no pod may be placed on the node: our reason, and who else has closed it; or ""."""
        return describe_node_cordon(read_node(self._cluster, node))

    def cordon(self, node: str, reason: str) -> None:
        """Cordon the node. A node that is unschedulable already stays so, and gets our taint too."""
        cordon_node(self._cluster, read_node(self._cluster, node), reason, "cordoned")

    def uncordon(self, node: str) -> None:
        """Remove our taint. Make the node schedulable if it was us who made it unschedulable."""
        uncordon_node(self._cluster, read_node(self._cluster, node))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        """Cordon the node. With `now`, evict the customers' pods, as far as their PodDisruptionBudgets allow.

        Raises AssayError that names the pods that stay: the caller has to try again.
        """
        waits_for = format_jobs(self._make_jobs(self._list_pods_on(node)))
        cordon_node(self._cluster, read_node(self._cluster, node), reason, "draining", waits_for)
        if now:
            self._evict(node, [pod for pod in self._list_pods_on(node) if self._is_customers(pod)])

    def end_jobs(self, node: str, jobs: Collection[str]) -> None:
        """Evict the customers' pods on the node that have these UIDs. Raises AssayError as a drain does."""
        pods = (pod for pod in self._list_pods_on(node) if self._is_customers(pod))
        self._evict(node, [pod for pod in pods if pod["metadata"]["uid"] in jobs])

    def _evict(self, node: str, pods: Sequence[KubernetesObject]) -> None:
        if kept := evict_pods(self._cluster, pods, self.patience_s):
            problem = f"{len(kept)} of {len(pods)} pods may not be evicted now: {format_jobs(self._make_jobs(kept))}"
            raise AssayError(problem, where=node, fix="move what the budget protects, or change the budget")

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        """Return the status of the nodes: one list of nodes, one of pods, and one of budgets if there are pods."""
        if not nodes:
            return {}
        known = self._read_nodes(nodes)
        pods_by_node: dict[str, list[KubernetesObject]] = defaultdict(list)
        placed = f"={min(nodes)}" if len(nodes) == 1 else "!="
        for pod in self._list_pods(f"spec.nodeName{placed},{RUNNING_PODS_SELECTOR}"):
            if self._is_customers(pod):
                pods_by_node[pod["spec"]["nodeName"]].append(pod)
        customers = {name: pods_by_node[name] for name in nodes if name in known}
        budgets = self._read_budgets(any(customers.values()))
        return {
            name: SchedulerNodeStatus(
                tuple(make_customer_job(pod, budgets.find_blocker(pod), known[name]) for pod in pods),
                describe_node_cordon(known[name]),
                others_cordon=describe_foreign_cordon(known[name]),
                others_taints=describe_foreign_taints(known[name]),
            )
            for name, pods in customers.items()
        }

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        """Cordon each node, several at a time. Raises AssayError that names the failures, after all others."""
        known = self._read_nodes(reasons) if reasons else {}

        def try_cordon(name: str) -> str:
            try:
                cordon_node(self._cluster, known.get(name) or read_node(self._cluster, name), reasons[name], "cordoned")
            except AssayError as error:
                return f"{name}: {error.what}"
            return ""

        with ThreadPoolExecutor(PARALLEL_CORDONS) as threads:
            failures = [failure for failure in threads.map(try_cordon, reasons) if failure]
        if failures:
            problem = f"{len(failures)} of {len(reasons)} nodes could not be cordoned: {'; '.join(failures)}"
            raise AssayError(problem)

    def run_spare(self, node: str, command: Sequence[str], given: bytes, deadline_s: float) -> SpareRunResult:
        """Run a command in a pod of the lowest priority, on a node without customers."""
        if jobs := self.list_jobs(node):
            return SpareRunResult(None, preempted_by=format_jobs(jobs))
        return KubernetesSpareRun(self._cluster, self.settings, node, self._load).run(command, given, deadline_s)

    def undrain_verified(self, node: str, began: datetime) -> str:
        """Make a node schedulable whose cordon asks for it and was set before a verification `began`. Return why."""
        return undrain_node(self._cluster, read_node(self._cluster, node), began)

    def show_notices(self, notices: Mapping[str, NodeNotice]) -> None:
        """Show customers what they are told of each node: a condition, and an Event for each move."""
        show_notices(self._cluster, notices)

    def find_missing_notices(self, notices: Mapping[str, NodeNotice]) -> dict[str, str]:
        """Return why a notice is not shown, by node."""
        return find_missing_notices(self._cluster, self._read_nodes(notices), notices) if notices else {}

    def rank_nodes(self, is_last: Mapping[str, bool]) -> dict[str, str]:
        """Let pods come last to these nodes, or as before: by a taint that no scheduler must respect."""
        return rank_nodes(self._cluster, is_last)

    @property
    def _cluster(self) -> KubernetesApi:
        return connect_cluster(self.settings)

    def _is_customers(self, pod: KubernetesObject) -> bool:
        return is_customer_pod(pod, self.settings.namespace)

    def _make_jobs(self, pods: Iterable[KubernetesObject]) -> tuple[CustomerJob, ...]:
        customers = [pod for pod in pods if self._is_customers(pod)]
        budgets = self._read_budgets(bool(customers))
        return tuple(make_customer_job(pod, budgets.find_blocker(pod)) for pod in customers)

    def _list_pods_on(self, node: str) -> list[KubernetesObject]:
        return self._list_pods(f"spec.nodeName={node},{RUNNING_PODS_SELECTOR}")

    def _list_pods(self, fields: str) -> list[KubernetesObject]:
        """Return pods as they are now, not from the API server's cache: nodes are emptied by what they show."""
        call = self._cluster.core.list_pod_for_all_namespaces
        pods = self._cluster.list_all(ApiRequest("list", "pods"), call, field_selector=fields)
        delete_leftover_pods(self._cluster, pods, self.settings.namespace)
        return pods

    def _read_nodes(self, names: Collection[str]) -> dict[str, KubernetesObject]:
        """Return the nodes by name: the one that is asked for, or all nodes of the cluster."""
        fields = {"field_selector": f"metadata.name={min(names)}"} if len(names) == 1 else {}
        nodes = self._cluster.list_all(ApiRequest("list", "nodes"), self._cluster.core.list_node, **fields)
        return {node["metadata"]["name"]: node for node in nodes}

    def _read_budgets(self, needed: bool) -> DisruptionBudgets:
        """Return every budget; none are read if not `needed`."""
        return read_budgets(self._cluster) if needed else DisruptionBudgets([])
