"""Takes a discovery. Names devices and ports as the inventory does.

Gives the draft of a FabricDesign as YAML, with `# review:` where a person must decide.
"""
