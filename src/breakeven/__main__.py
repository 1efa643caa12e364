"""`python -m breakeven` is the `breakeven` command."""

from breakeven.cli import main

if __name__ == "__main__":
    main()
