"""Accounts for every KV slot: it is free, cached or held by one running request, and never freed where it is free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Balance:
    """Where the slots are at one moment, and what is wrong with that."""

    total: int
    free: int
    cached: int
    held: int
    faults: tuple[str, ...] = ()  # empty where every slot is in exactly one place

    @property
    def adds_up(self) -> bool:
        return not self.faults and self.free + self.cached + self.held == self.total


@dataclass
class PoolWatch:
    """Watches one scheduler's allocator of KV slots (page size 1) from the moment it is made."""

    scheduler: Any
    double_frees: list[list[int]] = field(default_factory=list)  # per call of free: the slots that were free already

    def __post_init__(self) -> None:
        allocator = self.allocator
        upstream = allocator.free

        def free(slots: torch.Tensor) -> None:
            again = set(slots.tolist()) & set(self.free_slots())
            repeated = [slot for slot, times in Counter(slots.tolist()).items() if times > 1]
            if again or repeated:
                self.double_frees.append(sorted({*again, *repeated}))
            upstream(slots)

        allocator.free = free

    @property
    def allocator(self) -> Any:
        return self.scheduler.token_to_kv_pool_allocator

    def free_slots(self) -> list[int]:
        """In the allocator's order, with those whose release waits for the end of a free group."""
        allocator = self.allocator
        waiting = [] if allocator.is_not_in_free_group else allocator.free_group  # else what the last group has freed
        pools = [allocator.free_pages, allocator.release_pages, *waiting]
        return [slot for pool in pools for slot in pool.tolist()]

    def cached_slots(self) -> list[int]:
        """In the radix cache; running requests share those of their prefixes."""
        slots: list[int] = []
        nodes = [self.scheduler.tree_cache.root_node]
        while nodes:
            for child in nodes.pop().children.values():
                slots += child.value.tolist()
                nodes.append(child)
        return slots

    def held_slots(self, requests: Iterable[Any]) -> list[int]:
        """Held by one of these requests alone: from the end of its cached prefix on."""
        slots: list[int] = []
        for request in requests:
            if request.req_pool_idx is not None and request.kv_allocated_len:
                row = self.scheduler.req_to_token_pool.req_to_token[request.req_pool_idx]
                slots += row[request.cache_protected_len : request.kv_allocated_len].tolist()
        return slots

    def balance(self, requests: Iterable[Any]) -> Balance:
        """Between two steps; ``requests`` are all that may hold slots."""
        places = {"free": self.free_slots(), "cached": self.cached_slots(), "held": self.held_slots(requests)}
        total = int(self.allocator.size)
        counts = {place: len(slots) for place, slots in places.items()}
        return Balance(total=total, faults=tuple(_faults(places, total)), **counts)


def _faults(places: dict[str, list[int]], total: int) -> Iterable[str]:
    counted = Counter(slot for slots in places.values() for slot in slots)
    for slot, times in sorted(counted.items()):
        if times > 1:
            found = [name for name, slots in places.items() for _ in range(slots.count(slot))]
            yield f"slot {slot} is {' and '.join(found)}"
    lost = sorted(set(range(1, total + 1)) - set(counted))
    if lost:
        yield f"slots {lost} are nowhere"
    foreign = sorted(set(counted) - set(range(1, total + 1)))
    if foreign:
        yield f"slots {foreign} do not exist"
