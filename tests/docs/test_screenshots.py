"""docs/images/*.svg show what the tool prints today, and nothing of the machine on which they were made."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import screenshots

ROOT = Path(__file__).resolve().parents[2]
SHOTS = {shot.name: shot for shot in screenshots.SHOTS}
ANEW = "run `make screenshots`"


def drawn(svg: str) -> list[str]:
    """The lines of a picture, as text: what another version of the drawing library leaves as it is."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for item in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        words = "".join(item.itertext()).replace("\N{NO-BREAK SPACE}", " ")
        rows.setdefault(float(item.get("y") or 0), []).append((float(item.get("x") or 0), words))
    return [" ".join("".join(words for _, words in sorted(rows[y])).split()) for y in sorted(rows)]


def stored(name: str) -> str:
    return (screenshots.IMAGES / f"{name}.svg").read_text("utf-8")


@pytest.mark.wheels
@pytest.mark.parametrize("name", [name for name, shot in SHOTS.items() if shot.version])
def test_a_picture_is_what_a_run_prints(name: str, tree: Callable[..., Path]) -> None:
    assert drawn(screenshots.take(SHOTS[name], tree(SHOTS[name].version))) == drawn(stored(name)), ANEW


def test_the_matrix_is_that_of_the_page() -> None:
    """A test of that page makes it anew from every wheel."""
    page = (ROOT / "docs" / "supported-releases.md").read_text("utf-8")
    rows = re.findall(r"^\| (\S+) \| `(\w+)` \| ([^|]+) \| ([^|]+) \|", page, flags=re.M)
    assert len(rows) > 10
    lines = drawn(stored("matrix"))
    assert [" ".join(row) for row in rows] == [line for line in lines if line[:1].isdigit()], ANEW


@pytest.mark.parametrize("name", SHOTS)
def test_a_picture_names_no_machine_and_fetches_nothing(name: str) -> None:
    svg = stored(name)
    assert set(re.findall(r"\w+://[\w.]+", svg)) <= {"http://www.w3.org", "https://www.textualize.io"}
    assert not re.search(r"(?:^|[\s;>])/(?:tmp|home|root|work|srv|usr|var)\b", svg)
    assert "@font-face" not in svg and f"ddtree-patch {' '.join(SHOTS[name].arguments)}" in "\n".join(drawn(svg))


def test_every_picture_is_shown() -> None:
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    for name in SHOTS:
        assert f"images/{name}.svg)" in pages
    assert {path.stem for path in screenshots.IMAGES.iterdir()} == set(SHOTS)
