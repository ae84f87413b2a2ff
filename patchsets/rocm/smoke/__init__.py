"""What the five steps must do in a patched SGLang: the smoke tier, run by the target's own interpreter.

No GPU, neither AMD's nor any other: each check calls SGLang's own code as a host with one would. The probes'
``bootstrap.py`` makes this folder the program's package; this file is for readers and type checkers alone.
"""
