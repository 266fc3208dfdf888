"""Takes entries about serial numbers and setups. Gives which part is where, since when, with which versions. Pure."""
