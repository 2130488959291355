"""Questions, tallies and estimates from answers."""
