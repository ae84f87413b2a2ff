"""Drives the real SGLang engine in one process, on tiny random models, for ``verify --tier e2e`` and for tests.

Loaded in the interpreter that SGLang runs in: standard library, torch, safetensors and sglang alone, Python 3.10 and
later. ``models`` writes checkpoints, ``flags`` names a server's command line, ``engine`` starts and steps it, ``pools``
accounts for its KV slots, ``forks`` gives every scenario a process of its own, and ``server`` is the program that holds
SGLang imported once for many of them. The probes' ``bootstrap.py`` runs a program of this folder and makes the folder
its package; this file is for readers and type checkers alone.
"""
