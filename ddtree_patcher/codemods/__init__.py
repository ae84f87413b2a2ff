"""The codemod primitives: pure functions from the bytes of one file to a change of it.

Each answers, through ``locate``: exactly one place and the change to make there (:class:`Found`), that it is already
so (:class:`AlreadySo`), or why neither (:class:`NotFound`, with the candidates and their lines).
"""

from __future__ import annotations

from typing import Protocol

from .add_branch import AddBranch
from .add_class import AddClass
from .add_enum_member import AddEnumMember
from .add_field import AddField
from .add_file import AddFile
from .add_method import AddMethod
from .add_stamped_file import AddStampedFile
from .anchors import Anchor
from .catch_also import CatchAlso
from .edit_call import EditCall
from .edit_condition import EditCondition
from .ensure_import import EnsureImport
from .extend_literal import ExtendLiteral
from .fragment import Fragments
from .insert_after import InsertAfter
from .insert_before import InsertBefore
from .insert_last import InsertLast
from .replace_expression import ReplaceExpression
from .result import AlreadySo, Candidate, Found, Location, NotFound, Splice, apply_splices
from .set_constant import SetConstant
from .source import Source


class Codemod(Protocol):
    """One edit of one existing file."""

    @property
    def path(self) -> str: ...

    def locate(self, source: Source) -> Location: ...

    def symbols(self) -> tuple[str, ...]:
        """The definitions that it looks at, as dotted names in the file ("" is the module)."""
        ...


__all__ = [
    "AddBranch",
    "AddClass",
    "AddEnumMember",
    "AddField",
    "AddFile",
    "AddMethod",
    "AddStampedFile",
    "AlreadySo",
    "Anchor",
    "Candidate",
    "CatchAlso",
    "Codemod",
    "EditCall",
    "EditCondition",
    "EnsureImport",
    "ExtendLiteral",
    "Found",
    "Fragments",
    "InsertAfter",
    "InsertBefore",
    "InsertLast",
    "Location",
    "NotFound",
    "ReplaceExpression",
    "SetConstant",
    "Source",
    "Splice",
    "apply_splices",
]
