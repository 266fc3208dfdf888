"""The lab's BMCs: one Redfish service per virtual node, over HTTPS, all in one process.

```
settle power flash journal     pure: what time, a reset, an image do to a node's state
door machine                   who may come in; look at the state, or change it
tree + root systems …          every resource as a function of the state
actions uploads events         what changes the state
answers errors service         the rules of the protocol
server certificates            ports and TLS
```

Nothing is remembered between requests but who is logged in or listens: each request reads the node's state file, so a
fault that another process plants shows at once.
"""
