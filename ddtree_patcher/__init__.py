"""Rewrites an installed package by structural codemods, proves that it did, and can put every byte back."""

__version__ = "0.1.0"
