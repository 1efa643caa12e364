"""Where servers find what hides secrets."""

from breakeven.secrets import HIDDEN, masked_argv, masked_environment, masked_text

__all__ = ["HIDDEN", "masked_argv", "masked_environment", "masked_text"]
