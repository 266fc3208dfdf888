"""Takes an address, its trust and time limits. Gives HTTPS connections that end on time, for several reads at once."""
