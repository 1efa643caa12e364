"""Trains the head of a recipe, as one of the processes that torchrun starts:  train_child.py RECIPE"""

import sys
from pathlib import Path

from breakeven.eagle.recipe_file import read_recipe
from breakeven.eagle.train.run import train_head

if __name__ == "__main__":
    train_head(read_recipe(Path(sys.argv[1])))
