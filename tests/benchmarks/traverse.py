"""The least that a codemod of one step does: parse a file, visit its tree, print it. For ``libcst.tool codemod``."""

from __future__ import annotations

import libcst
from libcst.codemod import VisitorBasedCodemodCommand


class Traverse(VisitorBasedCodemodCommand):
    """Looks at every class, as a codemod does to find its place, and changes none."""

    DESCRIPTION = "Changes nothing."

    def leave_ClassDef(self, original_node: libcst.ClassDef, updated_node: libcst.ClassDef) -> libcst.ClassDef:
        return updated_node
