"""What happens on disk: with a tiny package and a tiny patchset, so that a test takes milliseconds."""
