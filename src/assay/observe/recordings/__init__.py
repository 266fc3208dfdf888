"""Takes files that people made with other tools (nvidia-smi, ibstat, logs). Parses each by its format.

Gives one evidence document.
"""
