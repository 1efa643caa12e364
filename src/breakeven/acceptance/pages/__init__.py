"""What each engine's /metrics page says, under the names that the engine gives it."""
