"""Wheels of a handful of files, as an index or a cache would have them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from ddtree_patcher.records import row_for


def make_wheel(
    folder: Path, version: str, files: Mapping[str, str], *, says: str = "", name: str = "sglang", record: str = ""
) -> Path:
    """A wheel in ``folder``. ``says`` is the version in its metadata, and ``record`` its RECORD, where they differ."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {says or version}\n"
    content = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n"}
    rows = [row_for(path, text.encode()) for path, text in content.items()]
    content[f"{info}/RECORD"] = record or "\n".join([*rows, f"{info}/RECORD,,", ""])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in content.items():
            archive.writestr(member, text)
    return path
