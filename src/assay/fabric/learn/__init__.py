"""Takes a discovery, or a list of cables. Names devices and ports as the inventory does.

Gives the draft of a FabricDesign as YAML, with `# review:` where a person must decide.
"""
