"""The start-up self-check: does the target's verify forward keep the branches of a tree apart?

An attention backend that ignores the tree mask, or reads it with another layout, verifies a tree as a chain: nothing
fails, the tokens are wrong. So before the first request a tree of two branches is verified, for two requests of unequal
lengths at once and through the captured graph where there is one:

- changing a node of one branch must change the logits of its descendants, and must leave the other branch's alone;
- the second request alone must get the logits that it got beside the first;
- a hybrid target must keep, of a tree, the state that it keeps when the path to a node is verified as a chain;
- where accepted entries of the KV cache are moved (from 0.5.14 on), the pool must be able to move them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode, ForwardBatch, ForwardMode
from sglang.srt.speculative.ddtree_input import plan_window
from sglang.srt.speculative.ddtree_recurrent import BenchStates
from sglang.srt.speculative.ddtree_resolution import moves_kv_cache
from sglang.srt.speculative.ddtree_tree import DraftTree

# Shares of the change that a node makes in its own branch. Another branch may change by rounding alone; the same
# request in another batch may run through other kernels.
_LEAK = 0.01
_BATCH = 0.05
# Share of the way that a recurrent state goes along a path: rounding, and experts chosen otherwise because of it.
_STATE = 0.25


class SelfCheckError(RuntimeError):
    """The target does not verify trees as it should: the server must not start."""


def check_tree_attention(runtime: Any, target: Any, verify_input: Any, *, is_hybrid: bool = False) -> str:
    """One line about what was checked. Raises :class:`SelfCheckError`. Leaves the pools as they were.

    `verify_input` is the class of the target's inputs, dflash_info.DDTreeVerifyInput.
    """
    if runtime.width < 3:
        return "DDTREE: a tree of one drafted node has no branches: nothing to check."
    with torch.inference_mode(), _Bench(runtime, target, verify_input, is_hybrid) as bench:
        bench.fill_prefixes()
        before = bench.logits(changed=False)
        after = bench.logits(changed=True)
        alone = bench.logits(changed=False, only=bench.bs - 1)
        if moves_kv_cache():
            bench.move_onto_itself()
        drift = bench.state_drift() if is_hybrid else 0.0
    change = (after - before).abs().amax(-1).view(bench.bs, bench.width)
    branch = torch.arange(bench.width, device=change.device) % 2 == 1
    effect, leak = float(change[:, branch].amin()), float(change[:, ~branch].amax())
    difference = float((alone - before[-bench.width :]).abs().amax())
    backend = type(target.attn_backend).__name__
    if not effect > 0.0:
        raise SelfCheckError(
            f"DDTREE self-check failed: on {backend} a node of a draft tree does not see its ancestors (changing one "
            f"changes a descendant's logits by {effect:.3g}). {_REMEDY}"
        )
    if not leak <= _LEAK * effect:
        raise SelfCheckError(
            f"DDTREE self-check failed: {backend} lets the branches of a draft tree see each other (changing a node "
            f"changes its own branch's logits by at least {effect:.3g} and the other branch's by {leak:.3g}). {_REMEDY}"
        )
    if not difference <= _BATCH * effect:
        raise SelfCheckError(
            f"DDTREE self-check failed: {backend} verifies a request differently beside another one of another length "
            f"(logits differ by {difference:.3g}; a node's own change is at least {effect:.3g}). {_REMEDY}"
        )
    if not drift <= _STATE:
        raise SelfCheckError(
            f"DDTREE self-check failed: {type(target.attn_backend.linear_attn_backend).__name__} does not keep the "
            "state of the accepted node of a draft tree (it differs from that of the same path as a chain by "
            f"{drift:.3g} of the way there). Use --speculative-algorithm DFLASH, and report this with the release and "
            "the device."
        )
    states = f", state drift {drift:.3g}" if is_hybrid else ""
    return f"DDTREE: self-check passed on {backend}: {bench.bs} requests, {bench.width} nodes, leak {leak:.3g}{states}."


_REMEDY = (
    "Use another --attention-backend, report this with the release and the device, or switch the check off with "
    "SGLANG_DDTREE_SELF_CHECK=0 if you know that it is wrong."
)


class _Bench:
    """Two requests in the first rows of the request table, with slots of their own, as long as the context lasts.

    A request's prefix is one slot that nobody has written and some that :meth:`fill_prefixes` writes.
    """

    def __init__(self, runtime: Any, target: Any, verify_input: Any, is_hybrid: bool) -> None:
        self.runtime, self.target, self.verify_input = runtime, target, verify_input
        self.width = runtime.width
        self.table = target.req_to_token_pool.req_to_token
        self.bs = min(2, self.table.shape[0], int(target.max_running_requests))
        if is_hybrid:
            self.bs = min(self.bs, BenchStates.most(target))
        self.states = BenchStates(target, self.bs) if is_hybrid else None
        self.allocator = target.token_to_kv_pool_allocator
        # Unequal, as equal lengths hide a wrong layout of the mask.
        self.lens = torch.tensor([1 + self.width // 2, 1 + self.width][: self.bs])

    def __enter__(self) -> _Bench:
        self.rows = self.table[: self.bs].clone()
        page = int(self.allocator.page_size)
        each = -(-(1 + 2 * self.width) // page) * page
        slots = self.allocator.alloc(self.bs * each) if each <= self.table.shape[1] else None
        if slots is None:
            raise SelfCheckError(
                f"DDTREE: a verify width of {self.width} nodes is more than this server has room for "
                f"({self.allocator.available_size()} KV cache slots, {self.table.shape[1]} tokens a request). "
                "Lower --speculative-ddtree-budget."
            )
        self.slots = slots
        self.table[: self.bs, :each] = slots.view(self.bs, each).to(self.table.dtype)
        return self

    def __exit__(self, *_: object) -> None:
        self.table[: self.bs] = self.rows
        self.allocator.free(self.slots)
        if self.states is not None:
            self.states.restore()

    def move_onto_itself(self) -> None:
        """As after a verification in which every request took some path; some pools cannot move their entries."""
        slots = self.slots[: self.bs * self.width].to(torch.int64)
        try:
            self.allocator.get_kvcache().move_kv_cache(slots, slots)
        except (NotImplementedError, AssertionError, AttributeError) as error:
            raise SelfCheckError(
                f"DDTREE: the KV cache of this target ({type(self.allocator.get_kvcache()).__name__}) cannot move its "
                f"entries, which a tree needs after every verification: {error or type(error).__name__}. "
                "Use --speculative-algorithm DFLASH."
            ) from error

    def fill_prefixes(self) -> None:
        """Verify a chain after the first slot, so that the prefixes hold keys and values of real tokens."""
        index = torch.arange(self.width)
        self._verify(self._tree(index - 1, index), torch.ones(self.bs, dtype=torch.int64), slice(0, self.bs))

    def logits(self, *, changed: bool, only: int = -1) -> torch.Tensor:
        """Logits [rows, V] of a tree of two branches: even nodes are one, odd nodes the other, after node 0."""
        index = torch.arange(self.width)
        parents = (index - 2).clamp_min(0)
        parents[0] = -1
        tree = self._tree(parents, (index + 1) // 2, changed)
        which = slice(0, self.bs) if only < 0 else slice(only, only + 1)
        return self._verify(tree, self.lens, which)

    def state_drift(self) -> float:
        """Between the states after a node of a tree and after the same path as a chain, as a share of the way.

        Every node has two children, so that siblings have elder siblings and children of their own. The requests keep
        nodes of different depths.
        """
        assert self.states is not None
        index, every = torch.arange(self.width), slice(0, self.bs)
        parents = torch.div(index - 1, 2, rounding_mode="floor")
        depths = torch.floor(torch.log2(index.double() + 1)).long()
        tree = self._tree(parents, depths)
        kept = self.width - 1 - torch.arange(self.bs) * (self.width // 2)
        self._verify(tree, self.lens, every)
        of_tree = self.states.commit(kept.to(self.table.device))
        chain = self._tree(index - 1, index)
        for request, node in enumerate(kept.tolist()):
            path = _path(node, parents.tolist())
            chain.tokens[request, : len(path)] = tree.tokens[request, path]
        self._verify(chain, self.lens, every)
        of_chain = self.states.commit(depths[kept].to(self.table.device))
        drift: float = self.states.difference(of_tree, of_chain)
        return drift

    def _tree(self, parents: torch.Tensor, depths: torch.Tensor, changed: bool = False) -> DraftTree:
        vocab_size = int(self.target.model_config.vocab_size)
        tokens = (torch.arange(self.bs * self.width).view(self.bs, -1) * 37 + 11) % vocab_size
        if changed:
            tokens[:, 1] = (tokens[:, 1] + vocab_size // 2) % vocab_size
        shape, device = (self.bs, -1), self.table.device
        return DraftTree(
            tokens=tokens.to(device),
            parents=parents.expand(shape).to(device),
            depths=depths.expand(shape).to(device),
            ranks=torch.zeros_like(tokens).to(device),
            scores=torch.zeros(tokens.shape, device=device),
            max_depth=int(depths.max()),
        )

    def _verify(self, tree: DraftTree, lens: torch.Tensor, which: slice) -> torch.Tensor:
        """One target forward over the trees of some of the requests, right after `lens` tokens: float32 [rows, V]."""
        device = self.table.device
        if self.states is not None:
            self.states.begin()  # a verify forward leaves something else behind, which a commit has to replace
        tree = DraftTree(**{item.name: _part(getattr(tree, item.name), which) for item in fields(tree)})
        on_host, lens = lens[which], lens[which].to(device)
        rows = torch.arange(self.bs, device=device)[which]
        places = lens[:, None] + torch.arange(self.width, device=device)
        spec_info = self.verify_input(**self.runtime.verify_fields(tree, lens))
        spec_info.mask_tree(lens, on_host)
        wanted = {
            "forward_mode": ForwardMode.TARGET_VERIFY,
            "batch_size": len(rows),
            "input_ids": spec_info.draft_token,
            "req_pool_indices": rows,
            "seq_lens": lens,
            "seq_lens_cpu": on_host,
            "seq_lens_sum": int(on_host.sum()),
            "out_cache_loc": self.table[rows[:, None], places].reshape(-1).to(torch.int64),
            "positions": spec_info.positions,
            "spec_algorithm": self.target.spec_algorithm,
            "spec_info": spec_info,
            "mrope_positions": spec_info.positions.expand(3, -1) if _is_mrope(self.target) else None,
            "capture_hidden_mode": CaptureHiddenMode.FULL,
        }
        known = {item.name for item in fields(ForwardBatch)}
        for name in known & {"req_to_token_pool", "token_to_kv_pool", "attn_backend"}:  # to 0.5.12.post1
            wanted[name] = getattr(self.target, name)
        batch = ForwardBatch(**wanted)
        if hasattr(spec_info, "kv_loc_plan"):
            plan_window(self.target, batch, self.width).bind(batch, self.target.kv_index_translator)
        output = self.target.forward(batch).logits_output
        return output.next_token_logits.float().clone()


def _is_mrope(target: Any) -> bool:
    """Whether positions have three axes: asked of the runner, and from 0.5.16 on of its configuration."""
    holder = target if hasattr(target, "model_is_mrope") else target.model_config
    return bool(holder.model_is_mrope)


def _path(node: int, parents: list[int]) -> list[int]:
    """The nodes from the root to this one."""
    return [*_path(parents[node], parents), node] if node > 0 else [0]


def _part(value: Any, which: slice) -> Any:
    return value[which] if isinstance(value, torch.Tensor) else value
