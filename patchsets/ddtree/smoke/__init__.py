"""What DDTREE must do in a patched SGLang: the smoke tier, run by the target's own interpreter.

No GPU, no weights: models are configuration files that the program writes into a temporary folder. ``program`` lists
the checks; ``models`` resolves command lines on tiny models, ``arguments`` and ``refusals`` look at what came of them,
``wiring`` at the modules, and ``expect`` says what did not hold. The probes' ``bootstrap.py`` makes this folder the
program's package; this file is for readers and type checkers alone.
"""
