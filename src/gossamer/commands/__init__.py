"""The commands of the command line: one file each, with ``add`` for its parser; what they share lies beside them.

A command imports what it needs when it runs, and not what the others need.
"""
