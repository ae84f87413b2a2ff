"""The tree as tensors. These tests need torch, which the tool's own environment has not: there they are not collected,
and ``tests/unit/test_tensors.py`` runs every file of this folder in the interpreter that has it.

By hand: ``.venv-sglang/bin/python -m pytest tests/tensors``.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("torch"):
    import torch

    torch.set_num_threads(1)  # small tensors, and other test processes beside this one
else:
    collect_ignore_glob = ["test_*.py"]

# As in an installation, the runtime's modules are imported by their own names.
sys.path.insert(0, str(Path(__file__).parents[2] / "patchsets" / "ddtree" / "runtime"))
