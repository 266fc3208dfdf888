"""The benchmarks: `python -m bench [PART…]` measures what should be fast against its bounds."""
