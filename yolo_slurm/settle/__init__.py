"""Spool -> observations -> debits -> limits."""
