"""The versioned messages between a device and a server."""
