"""Save and load: a versioned, checksummed, pickle-free file. docs/store.md has the format.

Loading runs no code from the file and makes only data and objects of Gossamer's own classes, whose constructors check
what they get. A file that is truncated, damaged or of a later version is refused with a ValueError.
"""

from gossamer.store.files import VERSION, dumps, inspect, load, loads, save

__all__ = [
    "VERSION",
    "dumps",
    "inspect",
    "load",
    "loads",
    "save",
]
