"""EAGLE-3: a draft head trained on recorded traffic; what it must reach first, what it reaches afterwards.

plan → data → states → train → evaluate → export → card, each a folder of one working folder, joined by a
recipe (recipe.py). A stage writes `stage.json` when it is whole (stage.py): what it was made from, with
checksums. Each can be interrupted at any point and goes on where it was.
"""
