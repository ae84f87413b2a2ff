"""What a tree saves: verify steps of the trained pair's prompts, by budget, and their ratio to DFLASH's chain.

``make acceptance``, or ``PYTHONPATH=tests .venv-sglang/bin/python tests/benchmarks/acceptance.py``: in the interpreter
that has torch. Every source counts the same prompts under the same settings; where two of them disagree about one
prompt, or the chain is not what is recorded, the status is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from oracles.decode import Chain, Limits, Proposal, Tree, decode_speculatively
from oracles.dflash_models import load_pair

FOLDER = Path(__file__).resolve().parents[1] / "models" / "tiny-pair"
TOPK = 8
BUDGETS = (7, 16, 32)


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    budget: int | None  # None: DFLASH
    spine: bool = False

    @property
    def name(self) -> str:
        return f"DDTREE {self.budget}{', spine' * self.spine}" if self.budget else "DFLASH"


@dataclass(frozen=True)
class Prompt:
    name: str  # the group and a number
    tokens: Sequence[int]
    chain_steps: int  # what DFLASH took for 64 tokens, as recorded

    @property
    def group(self) -> str:
        return self.name.rstrip("0123456789")


Counts = Mapping[Setting, Sequence[int]]  # setting → prompt → verify steps
Source = Callable[[Setting, Sequence[Prompt], int], Sequence[int]]  # (setting, prompts, new tokens) → verify steps

SETTINGS = (Setting(None), *(Setting(budget, spine) for spine in (False, True) for budget in BUDGETS))


def oracle(setting: Setting, prompts: Sequence[Prompt], new_tokens: int) -> Sequence[int]:
    """Plain torch, and an exact best-first tree."""
    proposal: Proposal = Tree(setting.budget, TOPK, setting.spine) if setting.budget else Chain()
    pair = load_pair(FOLDER)
    return [decode_speculatively(pair, prompt.tokens, proposal, Limits(new_tokens)).verify_count for prompt in prompts]


# The engine is added here: it takes the same three arguments and answers with the steps that it was seen to take.
SOURCES: Mapping[str, Source] = {"oracle": oracle}


def read_prompts() -> Sequence[Prompt]:
    items = json.loads((FOLDER / "prompts.json").read_text())
    return [Prompt(item["name"], item["prompt"], item["chain_verify_count"]) for item in items]


def draw(title: str, prompts: Sequence[Prompt], counts: Counts) -> None:
    """Steps a group and in all, and how many times fewer than the chain's."""
    groups = list(dict.fromkeys(prompt.group for prompt in prompts))
    print(f"\n{title}: verify steps (ratio to DFLASH)")
    print(f"{'':20}" + "".join(f"{group:>15}" for group in [*groups, "all"]))
    for setting, steps in counts.items():
        cells = []
        for group in [*groups, ""]:
            inside = [number for number, prompt in enumerate(prompts) if group in ("", prompt.group)]
            mine, chain = (sum(row[number] for number in inside) for row in (steps, counts[SETTINGS[0]]))
            cells.append(f"{mine:>7} ×{chain / mine:4.2f} ")
        print(f"{setting.name:20}" + "".join(f"{cell:>15}" for cell in cells))


def disagreements(prompts: Sequence[Prompt], found: Mapping[str, Counts], new_tokens: int) -> list[str]:
    """One line for every prompt and setting that two sources count differently, or that is not as recorded."""
    lines = []
    for setting in SETTINGS:
        for number, prompt in enumerate(prompts):
            counts = {source: counted[setting][number] for source, counted in found.items()}
            if setting == SETTINGS[0] and new_tokens == 64:
                counts["recorded"] = prompt.chain_steps
            if len(set(counts.values())) > 1:
                lines.append(f"{setting.name}, {prompt.name}: " + ", ".join(f"{k} {v}" for k, v in counts.items()))
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Counts verify steps on the trained pair.")
    parser.add_argument("--tokens", type=int, default=64, help="new tokens a prompt [64, which is what is recorded]")
    parser.add_argument("--prompts", type=int, help="how many, spread over the groups [all]")
    parser.add_argument("--source", action="append", choices=SOURCES, help="count with this alone; repeatable [every]")
    given = parser.parse_args()
    torch.set_num_threads(1)
    prompts = read_prompts()
    if given.prompts:
        prompts = prompts[:: max(1, len(prompts) // given.prompts)][: given.prompts]
    found = {}
    for name in given.source or SOURCES:
        found[name] = {setting: SOURCES[name](setting, prompts, given.tokens) for setting in SETTINGS}
        draw(f"{name}, {len(prompts)} prompts of {given.tokens} tokens, topk {TOPK}", prompts, found[name])
    wrong = disagreements(prompts, found, given.tokens)
    print("\n".join(["", *wrong] if wrong else ["", "every count is as recorded, and the same in every source"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
