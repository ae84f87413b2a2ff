"""Which patchset brought DDTREE into this SGLang, as `ddtree-patch status` names it: for whoever asks a server."""

from __future__ import annotations

PATCHSET_ID = "@PATCHSET_ID@"
PATCHSET_VERSION = "@PATCHSET_VERSION@"
PATCHSET_DIGEST = "@PATCHSET_DIGEST@"  # SHA-256 over every file of the patchset
