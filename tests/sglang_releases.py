"""The releases of SGLang that tests are made for."""

from __future__ import annotations

from fetch_wheels import releases

WITHOUT_DFLASH = "0.5.9"
WITH_DFLASH = tuple(version for version in releases() if version != WITHOUT_DFLASH)  # each has a snapshot
SUPPORTED = ("0.5.11", "0.5.12", "0.5.12.post1", "0.5.13", "0.5.13.post1")
LATER = tuple(version for version in WITH_DFLASH if version not in SUPPORTED)
STEPS = (
    *("enum", "flags", "validation", "choices", "runtime", "verify-input", "worker-import", "worker-branch"),
    *("graph-mask", "requests"),
)


def outcomes(version: str, word: str) -> dict[str, str]:
    """Step → outcome where all is well: ``word``, but for a step that the release does not need."""
    # Only 0.5.11 lists the algorithms that the command line takes.
    return {step: word if step != "choices" or version == "0.5.11" else "not_needed" for step in STEPS}
