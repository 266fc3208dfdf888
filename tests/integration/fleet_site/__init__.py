"""The test site: a fleet's real side, beside the lab. BMCs, sshd and webhook that note all that reaches them.

`test_site.py` holds `Site`. Nothing here is virtual for assay: it finds these machines by the inventory alone.
"""
