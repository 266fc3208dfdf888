"""The ways to a node's readings: the evidence is the same document, whichever way it comes."""
