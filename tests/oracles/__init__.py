"""What DDTREE must do, written a second time and as plainly as possible: no SGLang, nothing shared with the runtime.

``heap_tree`` needs the standard library alone; ``dflash_models`` and ``decode`` need torch and safetensors.
"""
