"""The life of a survey on the server, from creation to release."""
