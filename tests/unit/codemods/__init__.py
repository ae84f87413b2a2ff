"""One file a codemod primitive: before-text, after-text, one call. What all of them promise is in ``laws``."""
