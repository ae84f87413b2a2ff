"""DDTREE is an algorithm, and one of the DFLASH family."""

from __future__ import annotations

from ddtree_patcher.codemods import AddEnumMember, AddMethod, Anchor, ExtendLiteral, ReplaceExpression
from ddtree_patcher.model import StepOutcome
from ddtree_patcher.patchset import Case, Refusal, Step, Variant
from ddtree_patcher.shape import Defines, HasFile, Lacks

from ..files import SPEC_INFO, SPEC_REGISTRY, fragments

_CODE = fragments("spec_info.py")
_IS_DFLASH = "self == SpeculativeAlgorithm.DFLASH"
_IS_FAMILY = "self in (SpeculativeAlgorithm.DFLASH, SpeculativeAlgorithm.DDTREE)"

_MEMBERS = (
    AddEnumMember(SPEC_INFO, "SpeculativeAlgorithm", "DDTREE", after="DFLASH"),
    ReplaceExpression(SPEC_INFO, "SpeculativeAlgorithm.is_dflash", _IS_DFLASH, _IS_FAMILY),
    AddMethod(SPEC_INFO, "SpeculativeAlgorithm", _CODE.definition("SpeculativeAlgorithm.is_ddtree"), after="is_dflash"),
)
# From 0.5.13 on the registry refuses an algorithm class that lacks any predicate of the enum.
_CUSTOM = AddMethod(SPEC_REGISTRY, "CustomSpecAlgo", _CODE.definition("CustomSpecAlgo.is_ddtree"), after="is_dflash")
_RESERVED = Anchor("_RESERVED_NAMES = frozenset(...)")

_BEFORE = """\
from enum import Enum, auto


class SpeculativeAlgorithm(Enum):
    DFLASH = auto()
    NONE = auto()

    def is_dflash(self) -> bool:
        return self == SpeculativeAlgorithm.DFLASH

    def is_none(self) -> bool:
        return self == SpeculativeAlgorithm.NONE
"""
_AFTER = """\
from enum import Enum, auto


class SpeculativeAlgorithm(Enum):
    DFLASH = auto()
    DDTREE = auto()
    NONE = auto()

    def is_dflash(self) -> bool:
        return self in (SpeculativeAlgorithm.DFLASH, SpeculativeAlgorithm.DDTREE)

    def is_ddtree(self) -> bool:
        return self == SpeculativeAlgorithm.DDTREE

    def is_none(self) -> bool:
        return self == SpeculativeAlgorithm.NONE
"""
_REGISTRY_BEFORE = """\
class CustomSpecAlgo:
    def is_dflash(self) -> bool:
        return False


_RESERVED_NAMES = frozenset(
    {"DFLASH", "EAGLE", "NONE"}
)
"""
_REGISTRY_AFTER = """\
class CustomSpecAlgo:
    def is_dflash(self) -> bool:
        return False

    def is_ddtree(self) -> bool:
        return False


_RESERVED_NAMES = frozenset(
    {"DFLASH", "DDTREE", "EAGLE", "NONE"}
)
"""
_DERIVED_BEFORE = """\
class CustomSpecAlgo:
    def is_dflash(self) -> bool:
        return False


def _reserved_names():
    return frozenset(SpeculativeAlgorithm.__members__)
"""
_DERIVED_AFTER = _DERIVED_BEFORE.replace("False\n", "False\n\n    def is_ddtree(self) -> bool:\n        return False\n")

STEP = Step(
    id="enum",
    summary="DDTREE is a member of SpeculativeAlgorithm and counts as DFLASH family",
    why=(
        "Every `is_dflash()` site of SGLang then serves DDTREE too: worker construction, pools, hidden-state capture, "
        "graph runners. Only what a tree must do differently asks `is_ddtree()`."
    ),
    variants=(
        Variant("no_registry", when=(Lacks(HasFile(SPEC_REGISTRY)),), edits=_MEMBERS),
        Variant(
            "reserved_names_listed",
            when=(Defines(SPEC_REGISTRY, "_RESERVED_NAMES"),),
            edits=(*_MEMBERS, _CUSTOM, ExtendLiteral(SPEC_REGISTRY, _RESERVED, '"DDTREE"', beside='"DFLASH"')),
        ),
        Variant(
            "reserved_names_derived", when=(Defines(SPEC_REGISTRY, "_reserved_names"),), edits=(*_MEMBERS, _CUSTOM)
        ),
    ),
    postcondition=(
        Defines(SPEC_INFO, "SpeculativeAlgorithm.DDTREE"),
        Defines(SPEC_INFO, "SpeculativeAlgorithm.is_ddtree"),
    ),
    cases=(
        Case("no_registry", {SPEC_INFO: _BEFORE}, {SPEC_INFO: _AFTER}),
        Case(
            "reserved_names_listed",
            {SPEC_INFO: _BEFORE, SPEC_REGISTRY: _REGISTRY_BEFORE},
            {SPEC_INFO: _AFTER, SPEC_REGISTRY: _REGISTRY_AFTER},
        ),
        Case(
            "reserved_names_derived",
            {SPEC_INFO: _BEFORE, SPEC_REGISTRY: _DERIVED_BEFORE},
            {SPEC_INFO: _AFTER, SPEC_REGISTRY: _DERIVED_AFTER},
        ),
    ),
    refusals=(
        Refusal({SPEC_INFO: _BEFORE.replace("DFLASH = auto()", "D_FLASH = auto()")}, StepOutcome.ANCHOR_MISSING),
        Refusal({SPEC_INFO: _BEFORE.replace("    DFLASH", "    DDTREE = 7\n    DFLASH")}, StepOutcome.HALF_UPSTREAMED),
        Refusal({SPEC_INFO: _BEFORE + _BEFORE}, StepOutcome.ANCHOR_AMBIGUOUS),
        Refusal({SPEC_INFO: "class SpeculativeAlgorithm(\n"}, StepOutcome.NOT_ROUNDTRIPPABLE),
        Refusal({}, StepOutcome.FILE_MISSING),
    ),
)
