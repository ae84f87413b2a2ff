"""``python -m ddtree_patcher`` is ``ddtree-patch``."""

from .cli import main

main(prog_name="ddtree-patch")
