"""The commands of the command line: one file each, with ``work``; what they share lies beside them.

`parsers` says what may be given to each. A command is imported when it runs, and the others are not.
"""
