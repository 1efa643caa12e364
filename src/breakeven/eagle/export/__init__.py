"""A trained head as folders that vLLM and SGLang load: names, layer ids and norms as each has them.

eagle/shape.py says what a head is, tensors.py which tensors it has by that, library.py what it drafts when
the trainer's library runs it. source.py reads what was trained. vllm.py and sglang.py are the two formats
(format.py); they name what older versions leave out without a word. folder.py writes one of them, check.py
reads it again as its engine would, and run.py is the stage.
"""
