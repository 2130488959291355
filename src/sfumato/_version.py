"""The version, in one place: the build and ``sfumato --version`` read it here."""

__version__ = "0.1.0.dev0"
