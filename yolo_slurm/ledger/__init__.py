"""The books: entries and observations, only ever added."""
