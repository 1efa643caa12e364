"""Watch: what a rolling window of /metrics says of speculation on running servers; whether it pays now."""
