"""Runs in a fork of an engine server: requests that a grammar constrains, through the release's own XGrammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from ddtree_patch_probe.engine import Engine, Request
from scenarios import start

VOCABULARY = 256
END = 254  # the end of a sequence, as the tiny target names it


def constrained(
    algorithm: str, requests: list[dict[str, Any]], regexes: dict[str, str], flags: Sequence[str] = ()
) -> dict[str, Any]:
    """The tokens of each request by name, and what is wrong with the KV pool. ``regexes`` are by name, over letters.

    Token 0 is the letter ``a``, token 1 is ``b``, and so on; tokens beyond ``z`` are letters of no regex.
    """
    engine = start(algorithm, flags)
    _attach(engine, regexes)
    answers = engine.generate(*(Request(**fields) for fields in requests))
    return {
        "outputs": {answer.name: answer.output for answer in answers},
        "accept_lengths": {answer.name: answer.accept_lengths for answer in answers},
        "faults": [*engine.balance().faults, *map(str, engine.pools.double_frees)],
    }


def _attach(engine: Engine, regexes: dict[str, str]) -> None:
    """As the grammar manager would, which compiles with a tokenizer that the tiny models lack."""
    from sglang.srt.constrained import xgrammar_backend
    from xgrammar import GrammarCompiler, GrammarMatcher, TokenizerInfo, VocabType, apply_token_bitmask_inplace

    vocabulary = [chr(ord("a") + token) if token < 26 else chr(0x4E00 + token) for token in range(VOCABULARY)]
    info = TokenizerInfo(vocabulary, VocabType.RAW, vocab_size=VOCABULARY, stop_token_ids=[END])
    compiler = GrammarCompiler(info)
    # 0.5.17 pins the masks' memory and applies them on accelerators alone.
    xgrammar_backend._allocate_token_bitmask = _unpinned_bitmask
    grammar = xgrammar_backend.XGrammarGrammar
    grammar.apply_vocab_mask = staticmethod(
        lambda logits, vocab_mask: apply_token_bitmask_inplace(logits, vocab_mask, backend="cpu")
    )
    upstream = engine.scheduler._add_request_to_queue

    def add(request: Any, *arguments: Any, **keywords: Any) -> None:
        if request.rid in regexes and request.grammar is None:
            compiled = compiler.compile_regex(regexes[request.rid])
            matcher = GrammarMatcher(compiled, max_rollback_tokens=200)
            request.grammar = xgrammar_backend.XGrammarGrammar(
                matcher, VOCABULARY, compiled, None, regexes[request.rid]
            )
        upstream(request, *arguments, **keywords)

    engine.scheduler._add_request_to_queue = add


def _unpinned_bitmask(vocabulary: int, rows: int) -> torch.Tensor:
    """Every token allowed."""
    return torch.full((rows, -(-vocabulary // 32)), -1, dtype=torch.int32)
