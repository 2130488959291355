"""Private recommenders. Nothing here yet: the room exists so that its walls are checked."""
