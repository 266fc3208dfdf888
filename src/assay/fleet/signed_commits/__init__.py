"""Takes a fleet repository and the commit that was accepted last; verifies the signature of every commit since then.

Gives the signer of the newest commit, or says which commit nobody trusted signed.
"""
