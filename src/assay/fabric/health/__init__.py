"""How well the links, optics and switches of a fabric are: pure functions over what two scans said of the ports."""
