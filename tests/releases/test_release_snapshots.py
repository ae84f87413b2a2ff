"""The committed snapshots are what the wheels give, byte for byte, and each release is recognised by its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree_patcher import patchset, resources
from sglang_releases import SUPPORTED, WITH_DFLASH

pytestmark = pytest.mark.wheels

NEVER_RELEASED = "0.5.99"


def test_every_release_with_dflash_has_a_snapshot() -> None:
    names = {path.name for path in resources.folder("snapshots").glob("*.json")}
    assert names == {f"sglang-{version}.json" for version in WITH_DFLASH}


@pytest.mark.parametrize("version", WITH_DFLASH)
def test_captured_from_the_wheel_it_is_the_committed_one(
    version: str, wheel: Callable[[str], Path], tmp_path: Path, run_here: Any
) -> None:
    name = f"sglang-{version}.json"
    also = [word for other in patchset.bundled() if other != patchset.DEFAULT for word in ("--also", other)]
    run_here("snapshot", "capture", wheel(version), *also, "--out", tmp_path / name).expect(0)
    committed = resources.folder("snapshots") / name
    assert (tmp_path / name).read_bytes() == committed.read_bytes(), "run `make snapshots`"


@pytest.mark.parametrize("version", WITH_DFLASH)
def test_a_release_does_not_differ_from_its_snapshot(
    version: str, shared_tree: Callable[[str], Path], run_here: Any
) -> None:
    report = run_here("--root", shared_tree(version), "diff", "--exit-code").expect(0).json
    assert report["snapshot"] == {"version": version, "chosen": "version", "agreement": 1.0}
    assert report["changes"] == []
    assert all(item["changed_symbols"] == [] for item in report["meaning"])


@pytest.mark.parametrize("version", WITH_DFLASH)
def test_an_unknown_version_is_matched_by_content(version: str, tree: Callable[..., Path], run_here: Any) -> None:
    site = tree(version)
    _rename(site, version, NEVER_RELEASED)
    report = run_here("--root", site, "diff", "--exit-code").expect(0).json
    assert report["installation"]["version"] == NEVER_RELEASED
    assert report["snapshot"]["chosen"] == "nearest"
    assert report["snapshot"]["agreement"] == 1.0
    assert report["changes"] == []


@pytest.mark.parametrize("version", SUPPORTED)
def test_an_unknown_version_that_was_edited_too_is_matched_with_its_agreement(
    version: str, tree: Callable[..., Path], run_here: Any
) -> None:
    site = tree(version)
    _rename(site, version, NEVER_RELEASED)
    edited = site / "sglang/srt/speculative/spec_info.py"
    before = b"return self == SpeculativeAlgorithm.DFLASH"
    assert edited.read_bytes().count(before) == 1
    edited.write_bytes(edited.read_bytes().replace(before, b"return self is SpeculativeAlgorithm.DFLASH"))
    report = run_here("--root", site, "diff", "--exit-code").expect(3).json
    assert report["snapshot"]["chosen"] == "nearest"
    assert report["snapshot"]["version"] in SUPPORTED
    assert 0.9 < report["snapshot"]["agreement"] < 1.0
    assert [(item["change"], item["symbol"]) for item in report["changes"]] == [
        ("changed", "SpeculativeAlgorithm.is_dflash")
    ]
    assert [item["step"] for item in report["meaning"] if item["changed_symbols"]] == ["enum"]


def _rename(site: Path, version: str, other: str) -> None:
    """As if a release that nobody has seen had this content."""
    info = site / f"sglang-{version}.dist-info"
    metadata = info / "METADATA"
    metadata.write_text(
        metadata.read_text("utf-8").replace(f"\nVersion: {version}\n", f"\nVersion: {other}\n"), "utf-8"
    )
    record = info / "RECORD"
    record.write_text(record.read_text("utf-8").replace(info.name, f"sglang-{other}.dist-info"), "utf-8")
    shutil.move(info, site / f"sglang-{other}.dist-info")
