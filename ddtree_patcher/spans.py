"""Who changed which bytes: the spans of every step, in the coordinates of the pristine file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .codemods.result import Splice

Span = tuple[str, int, int]  # step, start, end


class Ledger:
    """The spans that steps touched in each file, kept while one step after the other changes it."""

    def __init__(self) -> None:
        self._layers: dict[str, list[list[Splice]]] = {}
        self._spans: dict[str, list[Span]] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._layers)

    def record(self, step: str, path: str, splices: Sequence[Splice]) -> None:
        """Note the splices of one step, given in the bytes that the steps before it left."""
        layers = self._layers.setdefault(path, [])
        for splice in splices:
            self._spans.setdefault(path, []).append((step, *to_pristine(layers, splice.start, splice.end)))
        layers.append(sorted(splices, key=lambda item: (item.start, item.end)))

    def pristine_offset(self, path: str, offset: int) -> int:
        """An offset in the bytes as they are by now, as one in the pristine bytes."""
        return to_pristine(self._layers.get(path, ()), offset, offset)[0]

    def overlaps(self) -> Iterator[tuple[str, str, str]]:
        """Path and the two steps, for each pair of steps that touch the same bytes or insert at the same place."""
        for path, spans in self._spans.items():
            for index, (first, start, end) in enumerate(spans):
                for second, other_start, other_end in spans[index + 1 :]:
                    shared = max(start, other_start) < min(end, other_end) or (start, end) == (other_start, other_end)
                    if shared and first != second:
                        yield path, first, second


def to_pristine(layers: Sequence[Sequence[Splice]], start: int, end: int) -> tuple[int, int]:
    """Offsets in the current bytes as offsets in the pristine ones.

    Inside text that an earlier layer put in, the span is widened to the whole place of that text.
    """
    for layer in reversed(layers):
        start, end = _to_input(layer, start, at_end=False), _to_input(layer, end, at_end=True)
    return start, end


def _to_input(layer: Sequence[Splice], position: int, *, at_end: bool) -> int:
    shift = 0
    for splice in layer:
        begins = splice.start + shift
        if position <= begins:
            break
        if position < begins + len(splice.new):
            return splice.end if at_end else splice.start
        shift += len(splice.new) - (splice.end - splice.start)
    return position - shift
