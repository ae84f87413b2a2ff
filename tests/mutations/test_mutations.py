"""Whatever upstream does to the places that steps change, a step is applied right, or refused by the right place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mutations.cases import APPLIED, MUTATIONS, RELEASES, Mutation
from mutations.judging import judge, linked, prove
from mutations.shown import conflict
from sglang_releases import EVERY

pytestmark = pytest.mark.wheels

# A run of the smoke tier costs a minute: all of them by `make drift-table` and `make test-all`.
PROVED = RELEASES if EVERY else tuple(item for item in RELEASES if item not in ("0.5.13.post1", "0.5.14"))


@pytest.fixture(scope="module")
def site(shared_tree: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``site(version)``: a tree for this module, put back by whoever changes it."""
    folder, made = tmp_path_factory.mktemp("mutated"), {}

    def get(version: str) -> Path:
        if version not in made:
            made[version] = linked(shared_tree(version), folder / version)
        return made[version]

    return get


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.id)
def test_it_fits_or_the_place_is_named(mutation: Mutation, site: Callable[[str], Path]) -> None:
    found = judge(site(mutation.release), mutation)
    assert not found.misapplied, "planned as if nothing had happened"
    assert found.right, f"{found.outcome} at {found.place}"


@pytest.mark.engine
@pytest.mark.parametrize("release", PROVED)
def test_what_fits_works(release: str, site: Callable[[str], Path], sglang_python: str) -> None:
    """All that must not matter at once: the smoke tier passes on it, in the interpreter that SGLang runs in."""
    harmless = [item for item in MUTATIONS if item.release == release and item.expected == APPLIED]
    assert harmless
    assert not prove(site(release), harmless, sglang_python)


def test_the_readme_shows_a_conflict_as_it_is_printed(site: Callable[[str], Path]) -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    assert f"```\n{conflict(site('0.5.18'), '0.5.18: condition of a feature changed')}\n```" in readme


def test_there_are_enough_of_them() -> None:
    assert len(MUTATIONS) >= 30 and len(RELEASES) >= 4
    assert not [name for name, count in Counter(item.id for item in MUTATIONS).items() if count > 1]
    refusals = [item for item in MUTATIONS if item.expected != APPLIED]
    assert len(refusals) >= 20 and all(item.at or item.inside for item in refusals)
