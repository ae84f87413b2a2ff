# Everything is set up in .venv and .cache by the targets themselves; a fresh clone needs Python, pip and make.
