"""Checks that the patched code is what was planned and does what it should, in tiers that need more and more."""
