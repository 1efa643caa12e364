"""What each engine's log says, under the words that the engine gives it."""
