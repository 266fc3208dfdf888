"""Takes measurements, and who held which part. Gives what gets worse among its peers, and when it reaches its limit."""
