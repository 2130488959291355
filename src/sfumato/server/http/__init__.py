"""Messages, routes, limits and metrics."""
