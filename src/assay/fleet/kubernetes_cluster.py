"""What an inventory may say of the Kubernetes cluster that places pods on a node."""

from __future__ import annotations

from pydantic import Field

from assay.model.spec import Name, Strict


class KubernetesCluster(Strict):
    """Where the API server is, and what there is ours.

    `kubeconfig` is a file, which holds or leads to the credentials, `context` one of its contexts (by default its
    current one). Without `kubeconfig`, a pod uses its own service account, anything else the file that kubectl would
    use. `namespace` is ours alone; `spare` names the PodTemplate in it from which pods for spare time are made.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: Name = "assay"
    spare: Name = Field(default="assay-spare")
