"""The draft tree as tensors: built from a drafter's marginals, compiled for one target forward, walked afterwards.

DDTree (Ringel and Romano, arXiv 2604.12989): a block-diffusion drafter gives one marginal for each of L positions. The
tree holds the `budget` prefixes of the highest probability under the product of the marginals. Everything is batched:
nothing here loops over requests or nodes, waits for the device, or has a shape that depends on data.

Words and shapes, the same everywhere:

- bs requests, L drafted positions (block size - 1), K candidates a position, V the vocabulary;
- W = verify width, the nodes of a request: node 0 is the root (the last decided token), nodes 1 ... are drafted, in
  order of descending probability, and padding fills up to W where fewer prefixes exist;
- D = the longest path in nodes, root included.

Order is total. Candidates of a position: higher log-probability, then lower token id. Nodes: higher cumulative
log-probability, then shallower, then the one whose parent comes first among the parents' depth, then the better
candidate. Log-probabilities are added as whole multiples of 2**-24 (finer than float32 at any sum that matters), so the
order of summation, the batch and the device change nothing. Parents come before children, siblings in ascending order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

_FRACTION_BITS = 24  # a cost of 1 is 2**-24 nats
_POSITION_BITS = 12  # a candidate costs less than 2**12 nats, or counts as that much
_MAX_POSITIONS = 128  # so that the costs of a path stay below _EXCLUDED
_EXCLUDED = 1 << (_FRACTION_BITS + _POSITION_BITS + 7)  # the cost of what may not enter the tree


@dataclass(frozen=True)
class DraftTree:
    """The trees of a batch. Every field is a tensor [bs, W]; node 0 is the root."""

    tokens: torch.Tensor  # int64; a padding node repeats the root's
    parents: torch.Tensor  # int64, the index of the parent node; -1 for the root and for padding
    depths: torch.Tensor  # int64; 0 for the root and for padding
    ranks: torch.Tensor  # int64, which candidate of its position a node is, best 0; 0 for the root, -1 for padding
    scores: torch.Tensor  # float32, cumulative log-probability; 0 for the root, -inf for padding
    max_depth: int  # the deepest that a node can be, in drafted tokens

    @property
    def is_node(self) -> torch.Tensor:
        """Bool [bs, W]: False for padding."""
        return self.ranks >= 0


@dataclass(frozen=True)
class Path:
    """What the target accepted of each tree."""

    order: torch.Tensor  # int64 [bs, W]: all nodes, the accepted ones first and in path order
    lengths: torch.Tensor  # int64 [bs]: accepted nodes, root included
    bonus: torch.Tensor  # int64 [bs]: the target's own token after the last accepted node
    left_chain: torch.Tensor  # bool [bs]: a node that was not its position's best candidate was accepted


def top_candidates(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k best tokens of each row and their log-probabilities under the whole row, best first.

    `logits` is [rows, V], float of any width. Returns int64 [rows, k] and float32 [rows, k]. Equal logits are ordered
    by token id; NaN counts as -inf; where a row has no finite logit, every log-probability is -inf.
    """
    tokens, values, lse = shard_candidates(logits, k)
    return tokens, normalise(values, lse)


def shard_candidates(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of one shard of the vocabulary: the k best columns and logits of each row, and the row's log-sum-exp.

    `logits` is [rows, V of the shard]. Returns int64 [rows, k], float32 [rows, k], float32 [rows]; a shard with fewer
    than k columns repeats column 0 with logit -inf.
    """
    logits = _finite_or_minus_inf(logits.float())
    here = min(k, logits.shape[-1])
    values, columns = _top_k(logits, here)
    missing = (0, k - here)
    columns = torch.nn.functional.pad(columns, missing)
    values = torch.nn.functional.pad(values, missing, value=float("-inf"))
    if logits.shape[-1] == 0:
        return columns, values, logits.new_full((logits.shape[0],), float("-inf"))
    return columns, values, torch.logsumexp(logits, dim=-1)


def merge_shards(
    tokens: torch.Tensor, values: torch.Tensor, lse: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """What :func:`top_candidates` gives, from the shards of every rank.

    `tokens` (global ids) and `values` are [ranks, rows, k], `lse` is [ranks, rows].
    """
    rows = tokens.shape[1]
    tokens = tokens.transpose(0, 1).reshape(rows, -1)
    values = values.transpose(0, 1).reshape(rows, -1)
    by_token = tokens.argsort(dim=-1)
    tokens, values = tokens.gather(1, by_token), values.gather(1, by_token)
    values, columns = _top_k(values, k)
    return tokens.gather(1, columns), normalise(values, torch.logsumexp(lse, dim=0))


def normalise(values: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [rows, k] of logits under a row's log-sum-exp [rows]; -inf where there is none."""
    return (values - lse[:, None]).nan_to_num(nan=float("-inf"), neginf=float("-inf")).clamp_max(0.0)


def build_tree(
    root_tokens: torch.Tensor,
    tokens: torch.Tensor,
    logprobs: torch.Tensor,
    budget: int,
    *,
    width: int = 0,
    spine: bool = False,
) -> DraftTree:
    """The `budget` most probable prefixes of each request.

    `root_tokens` is [bs]; `tokens` and `logprobs` are [bs, L, K], candidates best first. W is `width`, or budget + 1
    where that is more. Candidates whose log-probability is not finite never enter. With `spine`, the prefixes of best
    candidates alone (what a chain drafter proposes) come first, as far as the budget goes, and the rest is best-first.
    """
    bs, positions, ranks = tokens.shape
    if positions > _MAX_POSITIONS:
        raise ValueError(f"a tree has at most {_MAX_POSITIONS} drafted positions, got {positions}")
    plan = _plan(positions, ranks, budget, str(tokens.device))
    costs = (_costs(logprobs) << plan.index_bits).reshape(bs, -1)
    keys = costs.index_select(1, plan.candidate).add_(plan.index)  # of every prefix that can enter, by its last token
    layers, parents, best = [], [], None
    for layer in plan.layers:
        here = keys[:, layer.first : layer.first + len(layer.parents)]
        if best is not None:
            here.add_(best.index_select(1, layer.parents)).clamp_max_(_EXCLUDED << plan.index_bits)
        kept = here.topk(layer.size, dim=1, largest=False).values
        chosen = kept & plan.index_mask
        best = kept - chosen
        layers.append(best)
        parents.append(layer.first + chosen)
    return _in_order(
        plan, root_tokens, tokens, torch.cat(layers, 1), torch.cat(parents, 1), max(width, budget + 1), spine
    )


def _in_order(
    plan: _Plan,
    root_tokens: torch.Tensor,
    tokens: torch.Tensor,
    costs: torch.Tensor,
    origins: torch.Tensor,
    width: int,
    spine: bool,
) -> DraftTree:
    """The tree of the best prefixes among those of every depth: `costs` and `origins` are [bs, sum of layer sizes]."""
    bs, _, ranks = tokens.shape
    keys = costs + plan.flat
    if spine:
        # Below every key that a cost can give; the index in the low bits stays what it was.
        keys = torch.where(
            plan.is_spine & (costs < _EXCLUDED << plan.index_bits), plan.flat - plan.index_mask - 1, keys
        )
    size = min(plan.budget, keys.shape[1])
    keys = keys.topk(size, dim=1, largest=False).values
    flat = keys & plan.index_mask
    origin = plan.origin_of[origins.gather(1, flat)]  # [bs, size, 2]: flat index of the parent + 1, rank
    parent_flat, rank = origin.unbind(-1)
    place = torch.zeros((bs, costs.shape[1] + 1), dtype=torch.int64, device=tokens.device)
    place.scatter_(1, flat + 1, torch.arange(1, size + 1, device=tokens.device).expand(bs, -1))
    depth = plan.depth_of[flat]
    cost = costs.gather(1, flat) >> plan.index_bits
    is_node = cost < _EXCLUDED
    token = tokens.reshape(bs, -1).gather(1, (depth - 1) * ranks + rank)
    score = cost.to(torch.float64).mul(-(2.0**-_FRACTION_BITS)).to(torch.float32)

    def row(first: torch.Tensor | int, nodes: torch.Tensor, padding: torch.Tensor | float) -> torch.Tensor:
        out = nodes.new_empty((bs, width))
        out[:, 0] = first
        out[:, 1 : size + 1] = torch.where(is_node, nodes, padding)
        out[:, size + 1 :] = padding
        return out

    root = root_tokens.to(torch.int64)
    return DraftTree(
        tokens=row(root, token, root[:, None]),
        parents=row(-1, place.gather(1, parent_flat), -1),
        depths=row(0, depth, 0),
        ranks=row(0, rank, -1),
        scores=row(0, score, float("-inf")),
        max_depth=len(plan.layers),
    )


@dataclass(frozen=True)
class _Layer:
    """The prefixes of one depth that can be among the best `budget`, as children of those of the depth before."""

    parents: torch.Tensor  # int64 [C]: which kept prefix of the depth before
    size: int  # how many are kept
    first: int  # where this layer's prefixes begin among those of all layers


@dataclass(frozen=True)
class _Plan:
    """What depends on the shape alone. A key is a cost shifted left by `index_bits`, plus an index that breaks ties."""

    budget: int
    layers: tuple[_Layer, ...]
    index_bits: int
    index_mask: int
    candidate: torch.Tensor  # int64 [sum of C]: the last token of each prefix, among L * K candidates
    index: torch.Tensor  # int64 [sum of C]: 0, 1, ... within its layer; ties are decided by it
    flat: torch.Tensor  # int64 [F]: 0, 1, ... over the kept prefixes of all layers, shallow ones first
    depth_of: torch.Tensor  # int64 [F]
    is_spine: torch.Tensor  # bool [F]: the first of its layer, which is the prefix of best candidates
    origin_of: torch.Tensor  # int64 [sum of C, 2]: flat index of the parent + 1 (0: the root), rank


@lru_cache(maxsize=64)
def _plan(positions: int, ranks: int, budget: int, device: str) -> _Plan:
    if budget < 1 or ranks < 1 or positions < 1:
        raise ValueError(f"a tree needs a budget, positions and candidates, got {budget}, {positions}, {ranks}")
    layers: list[_Layer] = []
    candidates: list[int] = []
    index: list[int] = []
    origins: list[tuple[int, int]] = []
    sizes: list[int] = []
    kept = 1
    for depth in range(1, min(positions, budget) + 1):
        # At this depth at most budget - depth + 1 prefixes can enter, as the ancestors of each enter too; and a child
        # has at least (parent + 1) * (rank + 1) - 1 prefixes of its own depth before it.
        most = budget - depth + 1
        pairs = [(p, r) for p in range(kept) for r in range(min(ranks, most // (p + 1)))]
        first_parent = sum(sizes[:-1]) + 1 if sizes else 0
        layers.append(
            _Layer(
                parents=torch.tensor([p for p, _ in pairs], device=device),
                size=min(most, len(pairs)),
                first=len(origins),
            )
        )
        candidates += [(depth - 1) * ranks + r for _, r in pairs]
        index += range(len(pairs))
        origins += [(first_parent + p, r) for p, r in pairs]
        kept = layers[-1].size
        sizes.append(kept)
    bits = max(sum(sizes), *(len(layer.parents) for layer in layers)).bit_length()
    if bits + _EXCLUDED.bit_length() + 1 > 63:
        raise ValueError(f"a tree of budget {budget} over {positions} positions is too large")
    depths = [depth for depth, size in enumerate(sizes, 1) for _ in range(size)]
    firsts = [place == 0 for size in sizes for place in range(size)]
    return _Plan(
        budget=budget,
        layers=tuple(layers),
        index_bits=bits,
        index_mask=(1 << bits) - 1,
        candidate=torch.tensor(candidates, device=device),
        index=torch.tensor(index, device=device),
        flat=torch.arange(len(depths), device=device),
        depth_of=torch.tensor(depths, device=device),
        is_spine=torch.tensor(firsts, device=device),
        origin_of=torch.tensor(origins, device=device),
    )


def ancestors(tree: DraftTree) -> torch.Tensor:
    """Int64 [bs, W, D]: the node itself, its parent, its parent's parent ...; -1 after the root."""
    table, step = torch.arange(tree.parents.shape[1], device=tree.parents.device).expand_as(tree.parents), tree.parents
    table = table[..., None]
    while table.shape[-1] <= tree.max_depth:
        reached = step.clamp_min(0)
        further = table.gather(1, reached[..., None].expand(-1, -1, table.shape[-1]))
        further = torch.where(step[..., None] < 0, -1, further)
        step = torch.where(step < 0, -1, step.gather(1, reached))
        table = torch.cat([table, further], dim=-1)
    return table[..., : tree.max_depth + 1]


def visibility(table: torch.Tensor) -> torch.Tensor:
    """Bool [bs, W, W] from :func:`ancestors`: which nodes a node attends to, itself and its ancestors."""
    bs, width, _ = table.shape
    seen = torch.where(table < 0, table[..., :1], table)
    return torch.zeros((bs, width, width), dtype=torch.bool, device=table.device).scatter_(2, seen, True)


def packed_mask(seen: torch.Tensor, prefix_lens: torch.Tensor, size: int) -> torch.Tensor:
    """The mask that Triton and FlashInfer read: bool [size], request after request.

    A request has W rows of prefix + W entries, True where the node may attend: the whole prefix, and `seen` (from
    :func:`visibility`, bool [bs, W, W]). `prefix_lens` is [bs] on the device. `size` is at least the sum of
    W * (prefix + W): where the host knows no more than a bound of the lengths, what is left over is True and never
    read.
    """
    bs, width, _ = seen.shape
    lens = prefix_lens.to(torch.int64)
    ends = (width * (lens + width)).cumsum(0)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    node = torch.arange(width, device=lens.device)
    cells = starts.view(bs, 1, 1) + (node[:, None] + 1) * lens.view(bs, 1, 1) + node[:, None] * width + node
    mask = torch.ones(size, dtype=torch.bool, device=lens.device)
    return mask.scatter_(0, cells.reshape(-1), seen.reshape(-1))


def links(tree: DraftTree) -> tuple[torch.Tensor, torch.Tensor]:
    """First child and next sibling of every node: two int64 [bs, W], -1 where there is none.

    The form that SGLang's recurrent and tree-verify kernels read; both always point to a higher index.
    """
    bs, width = tree.parents.shape
    by_parent = tree.parents.argsort(dim=1, stable=True)
    parent = tree.parents.gather(1, by_parent)
    same = (parent[:, 1:] == parent[:, :-1]) & (parent[:, 1:] >= 0)
    none = by_parent.new_full((bs, 1), -1)
    following = torch.cat([torch.where(same, by_parent[:, 1:], -1), none], dim=1)
    next_sibling = torch.empty_like(by_parent).scatter_(1, by_parent, following)
    is_first = (parent >= 0) & ~torch.cat([torch.zeros_like(same[:, :1]), same], dim=1)
    # Whoever is no first child writes into a column that is dropped.
    column = torch.where(is_first, parent, width)
    first_child = by_parent.new_full((bs, width + 1), -1).scatter_(1, column, by_parent)[:, :width]
    return first_child.contiguous(), next_sibling  # kernels know no strides


def walk(tree: DraftTree, table: torch.Tensor, choices: torch.Tensor) -> Path:
    """Follow the target's own choices from the root: `choices` is [bs, W], the target's token after each node.

    A node is accepted where its parent is and the target's choice there is its token. `table` is :func:`ancestors`.
    """
    chosen = choices.gather(1, tree.parents.clamp_min(0)) == tree.tokens
    on_path = torch.where(tree.parents >= 0, chosen, False)
    on_path[:, 0] = True
    bs, width, depth = table.shape
    up = on_path.gather(1, table.clamp_min(0).view(bs, -1)).view(bs, width, depth)
    accepted = (up | (table < 0)).all(-1)
    order = torch.where(accepted, tree.depths, depth + torch.arange(width, device=table.device)).argsort(dim=1)
    lengths = accepted.sum(1)
    last = order.gather(1, lengths[:, None] - 1)
    left_chain = (accepted & (tree.ranks > 0)).any(1)
    return Path(order, lengths, choices.gather(1, last).squeeze(1), left_chain)


def chain_of(tree: DraftTree, path: Path, choices: torch.Tensor, length: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The accepted path as a chain of tokens: what was proposed, and the target's choice after each.

    Two int64 [bs, L], L being `length` or D where that is more. A chain verifier that compares them accepts exactly
    the path: after it, the proposed token differs from what the target chose.
    """
    nodes = path.order[:, : max(length, tree.max_depth + 1)]
    proposed, chosen = tree.tokens.gather(1, nodes), choices.gather(1, nodes)
    beyond = torch.arange(nodes.shape[1], device=nodes.device) >= path.lengths[:, None]
    other = torch.where(path.bonus == 0, 1, 0)[:, None]
    return torch.where(beyond, other, proposed), chosen


def nodes_at(path: Path, depths: torch.Tensor) -> torch.Tensor:
    """The nodes of the accepted path at these depths, int64 [bs]. A negative depth, which asks for none, stays."""
    return torch.where(depths < 0, depths, path.order.gather(1, depths.clamp_min(0)[:, None])[:, 0])


def _finite_or_minus_inf(values: torch.Tensor) -> torch.Tensor:
    return torch.where(values.isfinite(), values, float("-inf"))


def _costs(logprobs: torch.Tensor) -> torch.Tensor:
    """Int64, the same shape: what a candidate costs in multiples of 2**-24 nats; _EXCLUDED where it may not be used."""
    nats = logprobs.to(torch.float64).neg().clamp(0.0, float((1 << _POSITION_BITS) - 1))
    costs = nats.nan_to_num(nan=0.0).mul(float(1 << _FRACTION_BITS)).round().to(torch.int64)
    return torch.where(logprobs.isfinite(), costs, _EXCLUDED)


def _top_k(values: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest of each row of a finite or -inf float32 [rows, n], equal ones by column: values and columns."""
    # One integer key orders by value and then by column: torch.topk alone leaves open which of equal values it takes.
    bits = (values + 0.0).view(torch.int32)  # + 0.0 makes -0.0 the 0.0 that it equals
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    column = torch.arange(values.shape[1], device=values.device)
    keys = (ordered.to(torch.int64) << 32) + (0xFFFFFFFF - column)
    columns = 0xFFFFFFFF - (keys.topk(k, dim=1).values & 0xFFFFFFFF)
    return values.gather(1, columns), columns
