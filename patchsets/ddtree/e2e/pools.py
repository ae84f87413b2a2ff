"""Accounts for every page of KV slots: free, cached or held by one running request, and never freed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from . import release


@dataclass(frozen=True, slots=True)
class Balance:
    """Where the pages are at one moment, slots for page size 1, and what is wrong with that."""

    total: int
    free: int
    cached: int
    held: int
    faults: tuple[str, ...] = ()  # empty where every page is in exactly one place

    @property
    def adds_up(self) -> bool:
        return not self.faults and self.free + self.cached + self.held == self.total


@dataclass
class PoolWatch:
    """Watches one scheduler's allocator of KV slots from the moment it is made.

    What it counts are pages: slots, unless the server has a larger ``--page-size``. A page that is in part a request's
    own belongs to it.
    """

    scheduler: Any
    double_frees: list[list[int]] = field(default_factory=list)  # per call of free: the pages that were free already

    def __post_init__(self) -> None:
        allocator = self.allocator
        upstream = allocator.free

        def free(slots: torch.Tensor) -> None:
            pages = self._pages(slots)
            again = set(pages) & set(self.free_pages())
            repeated = _repeated(pages) if self.page_size == 1 else []  # a page has many slots, each of them named
            if again or repeated:
                self.double_frees.append(sorted({*again, *repeated}))
            upstream(slots)

        allocator.free = free
        self._demand_lists()

    def _demand_lists(self) -> None:
        """The pool's mover gets slots that lie one behind the other: its kernel reads no strides.

        PyTorch's operations do not, and some releases move with them on a CPU: there a fault would show on a GPU alone.
        """
        pool = self.allocator.get_kvcache()
        upstream = getattr(pool, "move_kv_cache", None)
        if upstream is None:
            return

        def move_kv_cache(target: torch.Tensor, source: torch.Tensor) -> None:
            for slots in (target, source):
                if not slots.is_contiguous():
                    raise AssertionError(f"slots to move have strides {slots.stride()}: a kernel would read others")
            upstream(target, source)

        pool.move_kv_cache = move_kv_cache

    @property
    def allocator(self) -> Any:
        return self.scheduler.token_to_kv_pool_allocator

    @property
    def page_size(self) -> int:
        return int(self.allocator.page_size)

    def free_pages(self) -> list[int]:
        """Those whose release waits for the end of a free group among them."""
        allocator = self.allocator
        pages = release.free_pages(allocator)
        if release.is_collecting_frees(allocator):
            pages += [page for slots in allocator.free_group for page in self._own_pages(slots)]
        return pages

    def cached_pages(self) -> list[int]:
        """In the radix cache; running requests share those of their prefixes."""
        cache = self.scheduler.tree_cache
        if not cache.evictable_size() + cache.protected_size():
            return []
        return self._own_pages(cache.all_values_flatten())

    def held_pages(self, requests: Iterable[Any]) -> list[int]:
        """Held by one of these requests alone: from the end of its cached prefix on, as far as slots were allocated."""
        pages: list[int] = []
        for request in requests:
            if span := release.kv_span(request):
                row, start, end = span
                pages += self._own_pages(self.scheduler.req_to_token_pool.req_to_token[row, start:end])
        return pages

    def balance(self, requests: Iterable[Any]) -> Balance:
        """Between two steps; ``requests`` are all that may hold slots."""
        places = {"free": self.free_pages(), "cached": self.cached_pages(), "held": self.held_pages(requests)}
        total = int(self.allocator.size) // self.page_size
        counts = {place: len(pages) for place, pages in places.items()}
        return Balance(total=total, faults=tuple(_faults(places, total)), **counts)

    def _pages(self, slots: torch.Tensor) -> list[int]:
        """The page of every slot."""
        pages: list[int] = (slots // self.page_size).tolist()
        return pages

    def _own_pages(self, slots: torch.Tensor) -> list[int]:
        """The pages of slots that one place holds. Of page size 1 a slot that is held twice is named twice."""
        pages = self._pages(slots)
        return pages if self.page_size == 1 else list(dict.fromkeys(pages))


def _repeated(pages: list[int]) -> list[int]:
    return [page for page, times in Counter(pages).items() if times > 1]


def _faults(places: dict[str, list[int]], total: int) -> Iterable[str]:
    counted = Counter(page for pages in places.values() for page in pages)
    for page, times in sorted(counted.items()):
        if times > 1:
            found = [name for name, pages in places.items() for _ in range(pages.count(page))]
            yield f"page {page} is {' and '.join(found)}"
    lost = sorted(set(range(1, total + 1)) - set(counted))
    if lost:
        yield f"pages {lost} are nowhere"
    foreign = sorted(set(counted) - set(range(1, total + 1)))
    if foreign:
        yield f"pages {foreign} do not exist"
