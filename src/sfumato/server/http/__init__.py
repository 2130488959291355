"""Routes, limits, metrics and the OpenAPI description."""
