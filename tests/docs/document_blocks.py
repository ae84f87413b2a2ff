"""What a test does with each block of commands in the documents: run it in a scratch environment, or say who does.

To add a block: find the section (``docs/page.md#section``) and give its blocks, in their order, one entry each.

- ``Run(CONTEXT)`` runs every line, in the folder that the context made. Contexts are the functions of ``scratch.py``.
  ``ends`` are lines that end with another status than 0, ``without`` lines that are not run, each with who runs it.
  Lines are given by their beginning.
- ``Elsewhere(REASON, HELD_BY)`` is for what cannot be run here: ``held_by`` is the test that runs it
  (``tests/folder/test_file.py::test_name``), or ``make TARGET`` where that is the command itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NEEDS_TORCH = "tests/releases/test_virtual_environment.py::test_found_by_python_alone_applied_verified_and_put_back"
INSTALLS = "tests/releases/test_packaging.py::test_it_plans_from_an_empty_folder"
E2E = "tests/transaction/test_tiers.py"
SERVES = "tests/e2e/test_engine_server.py"
ROCM = "tests/releases/test_second_patchset.py::test_proved_by_sglang_itself_and_put_back"
SHOWN = "tests/mutations/test_mutations.py::test_the_readme_shows_a_conflict_as_it_is_printed"
LOG = "tests/docs/test_ddtree_page.py::test_log_lines_are_those_of_the_code"


@dataclass(frozen=True)
class Run:
    """Every line is run."""

    context: str  # a function of scratch.py
    ends: Mapping[str, int] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Elsewhere:
    """No line is run."""

    reason: str
    held_by: str


Entry = Run | Elsewhere

BLOCKS: Mapping[str, tuple[Entry, ...]] = {
    "README.md#ddtree-patch": (Elsewhere("e2e takes minutes, a server needs a model", SERVES),),
    "README.md#try-it-two-commands": (Elsewhere("the targets download wheels and torch", "make demo"),),
    "README.md#use-it-on-a-real-installation": (Run("clean", without={"pip install": INSTALLS}),),
    "README.md#in-ci-and-in-images": (
        Run("applied", without={"ddtree-patch apply --require": NEEDS_TORCH, "ddtree-patch verify": NEEDS_TORCH}),
    ),
    "README.md#when-it-does-not-fit": (Elsewhere("what a conflict prints", SHOWN),),
    "docs/ddtree.md#start-a-server": (
        Elsewhere("a server needs a model", SERVES),
        Elsewhere("a line of the log", LOG),
    ),
    "docs/ddtree.md#numbers": (Elsewhere("a line of the log", LOG),),
    "docs/operating.md#install": (Run("clean", without={"pip install": INSTALLS}),),
    "docs/operating.md#the-first-time": (Run("clean"),),
    "docs/operating.md#what-is-checked": (
        Run("applied"),
        Elsewhere("e2e takes minutes", E2E),
    ),
    "docs/operating.md#in-ci": (
        Run("applied", without={"ddtree-patch apply --require": NEEDS_TORCH, "ddtree-patch verify": NEEDS_TORCH}),
        Run("clean"),
    ),
    "docs/operating.md#in-images": (Run("clean"),),
    "docs/operating.md#a-new-sglang": (
        Run(
            "applied",
            ends={"ddtree-patch --python /srv/venv/bin/python plan --check": 3},
            without={
                "pip install": "tests/releases/test_virtual_environment.py",
                "ddtree-patch --python /srv/venv/bin/python apply": NEEDS_TORCH,
            },
        ),
    ),
    "docs/operating.md#a-new-ddtree-patch": (
        Run(
            "applied",
            without={"pip install": INSTALLS, "ddtree-patch --python /srv/venv/bin/python apply": NEEDS_TORCH},
        ),
    ),
    "docs/operating.md#revert": (Run("applied"), Run("state_lost")),
    "docs/maintaining.md#add-a-release": (
        Elsewhere("it changes the repository", "tests/docs/test_add_release.py"),
        Elsewhere("all tests of a release", "make supported-releases"),
    ),
    "docs/maintaining.md#when-upstream-moved": (Run("clean"),),
    "docs/maintaining.md#tests-and-ci": (Elsewhere("the tests themselves", "make test"),),
    "docs/maintaining.md#documents": (
        Elsewhere(
            "what it makes is compared", "tests/docs/test_primitives.py::test_the_page_is_what_the_generator_makes"
        ),
    ),
    "docs/attestation.md#attestation": (Run("applied", without={"ddtree-patch apply": NEEDS_TORCH}),),
    "docs/machine-output.md#machine-output": (
        Run("applied", without={"ddtree-patch --events": NEEDS_TORCH, "ddtree-patch verify": NEEDS_TORCH}),
    ),
    "docs/machine-output.md#events": (Elsewhere("e2e takes minutes", E2E),),
    "docs/patchsets.md#rocm": (
        Run(
            "clean",
            without={
                "ddtree-patch --patchset rocm apply": ROCM,
                "ddtree-patch --patchset rocm verify": ROCM,
                "ddtree-patch --patchset rocm revert": ROCM,
            },
        ),
    ),
    "docs/recipes.md#images": (Elsewhere("it needs Docker", "tests/recipes/test_docker.py"),),
    "docs/upgrading.md#upgrading-sglang-under-the-patchset": (
        Elsewhere("it downloads a wheel", "tests/releases/test_diff.py"),
    ),
    "docs/writing-a-patchset.md#2-what-would-it-do": (Run("one_shape"),),
    "docs/writing-a-patchset.md#3-do-it-and-take-it-back": (Run("one_shape"),),
    "docs/writing-a-patchset.md#4-which-releases-does-it-fit": (Run("one_shape", ends={"ddtree-patch": 4}),),
    "docs/writing-a-patchset.md#7-green": (Run("two_shapes"), Run("two_shapes")),
}
