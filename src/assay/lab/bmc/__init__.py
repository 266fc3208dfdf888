"""The lab's BMCs: one Redfish service per virtual node, over HTTPS, all in one process.

```
settle power flash journal     pure: what time, a reset, an image do to a node's state
door                           who may come in: accounts, sessions, Basic
tree + root systems …          every resource as a function of the state
actions uploads events         what changes the state
service server                 HTTP: rules of the protocol; ports and certificates
```

Nothing is remembered between requests but who is logged in: each request reads the node's state file, so a
fault that another process plants shows at once.
"""

from assay.lab.bmc.server import Bmcs, serve

__all__ = ["Bmcs", "serve"]
