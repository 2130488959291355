"""The database of the service: answers, surveys, transactions."""
