"""Who may have brought what should not be there yet, and how to be rid of it."""

from __future__ import annotations

from dataclasses import replace

from ..installation import Installation
from ..model import Diagnostic, FileStatus, StepOutcome
from ..pristine import Pristine


def with_provenance(item: Diagnostic, look: Pristine) -> Diagnostic:
    """A diagnostic of a half that is there already, with who may have brought it and what to do; any other as it is."""
    if item.code != StepOutcome.HALF_UPSTREAMED.value or not item.path:
        return item
    who = _who(look, item.path)
    detail = f"{item.detail}\n{who}" if item.detail else who
    way_out = f"{item.remedy} {_way_out(look.installation)}".strip()
    return replace(item, detail=detail, remedy=way_out)


_LOST = "or an earlier ddtree-patch whose state folder (.ddtree-patch) is gone"


def _who(look: Pristine, path: str) -> str:
    """What RECORD gives away about it."""
    recorded = look.installation.recorded_sha256(path)
    if not recorded:
        return f"RECORD does not list that file: another tool put it there after the installation, {_LOST}."
    if look.find(path).status is FileStatus.FOREIGN:
        return f"RECORD has another digest of that file: another tool or a person edited it, {_LOST}."
    return (
        "RECORD vouches for that file: this is a fork or a later release that has the feature, "
        "or another tool patched the wheel or rewrote RECORD."
    )


def _way_out(installation: Installation) -> str:
    what = f"{installation.distribution}=={installation.version}" if installation.version else installation.distribution
    return (
        "Either use what is there and do without this patchset, or take it out first: with the tool that brought it, "
        f"or by `pip install --force-reinstall --no-deps {what}` (delete files that RECORD does not list by hand)."
    )
