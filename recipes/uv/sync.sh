#!/bin/sh
# Run this wherever you would run `uv sync`; arguments go to it. A synchronisation that installs SGLang anew takes the
# patch away; `apply` puts it back, and does nothing where it is there. Files of uv's cache are never written to.
set -eu
cd "$(dirname "$0")"
tier=${TIER:-smoke}
uv sync "$@"
uv run --no-sync ddtree-patch apply --verify static --require static
uv run --no-sync ddtree-patch verify --tier "$tier" --require "$tier"
