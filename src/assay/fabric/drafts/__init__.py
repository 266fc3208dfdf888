"""Takes a discovery, or a point-to-point sheet (CSV). Names devices and ports as the inventory does. Gives a FabricDesign draft as YAML, with `# review:` marks."""
