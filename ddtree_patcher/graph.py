"""The order of steps: pure functions over names and what they require."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .errors import PatchsetError, UsageError

Requirements = Mapping[str, Sequence[str]]


def order(requires: Requirements) -> tuple[str, ...]:
    """The names so that each comes after what it requires, otherwise as given. Refuses unknown names and cycles."""
    _refuse_unknown(requires)
    done: dict[str, None] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            raise PatchsetError(
                f"steps require each other in a circle: {cycle}", remedy="Drop one of these requirements."
            )
        if name not in done:
            for needed in requires[name]:
                visit(needed, (*path, name))
            done[name] = None

    for name in requires:
        visit(name, ())
    return tuple(done)


def closure(requires: Requirements, names: Collection[str]) -> frozenset[str]:
    """The names and everything that they require, directly or not."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(requires[name])
    return frozenset(found)


def ordered(requires: Requirements, first: str, second: str) -> bool:
    """Whether one of two steps requires the other, directly or not."""
    return first in closure(requires, [second]) or second in closure(requires, [first])


def connected(requires: Requirements) -> tuple[frozenset[str], ...]:
    """The groups of steps that requirements join, whichever way they go."""
    groups: list[frozenset[str]] = []
    for name, needed in requires.items():
        own = frozenset({name, *needed})
        joined = [group for group in groups if group & own]
        groups = [*(group for group in groups if group not in joined), own.union(*joined)]
    return tuple(groups)


def missing_chain(requires: Requirements, name: str, selected: Collection[str]) -> tuple[str, ...]:
    """The longest way from a step to a requirement that is not selected, as names; empty when nothing is missing."""
    chains = [chain for needed in requires[name] if (chain := _chain(requires, needed, selected))]
    return (name, *max(chains, key=len)) if chains else ()


def _chain(requires: Requirements, name: str, selected: Collection[str]) -> tuple[str, ...]:
    deeper = [chain for needed in requires[name] if (chain := _chain(requires, needed, selected))]
    if deeper:
        return (name, *max(deeper, key=len))
    return () if name in selected else (name,)


def select(requires: Requirements, steps: Sequence[str], through: str) -> tuple[str, ...]:
    """The steps to apply: all, the named ones, or everything up to and including ``through``.

    Refuses names that do not exist and a selection that leaves out a requirement, with the chain of what is missing.
    """
    everything = order(requires)
    for name in (*steps, *([through] if through else ())):
        if name not in requires:
            raise UsageError(f"there is no step {name!r}", remedy=f"The steps are, in order: {', '.join(everything)}.")
    wanted = set(steps) | (set(everything[: everything.index(through) + 1]) if through else set())
    if not wanted:
        return everything
    for name in (step for step in everything if step in wanted):
        if chain := missing_chain(requires, name, wanted):
            raise UsageError(
                f"step {name!r} needs steps that are not selected: {' requires '.join(chain)}",
                remedy=f"Select them too, or use --through {name}.",
            )
    return tuple(name for name in everything if name in wanted)


def _refuse_unknown(requires: Requirements) -> None:
    for name, needed in requires.items():
        for other in needed:
            if other not in requires:
                raise PatchsetError(
                    f"step {name!r} requires {other!r}, and there is no such step",
                    remedy=f"The steps are: {', '.join(requires)}.",
                )
