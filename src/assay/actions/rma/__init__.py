"""The dossier of a node that goes back to its vendor, as one archive that is the same each time it is made."""
