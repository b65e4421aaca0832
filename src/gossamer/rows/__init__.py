"""Rows as they come: numbers with gaps, categories, text and timestamps from frames, tables and dicts.

`RowEncoder` finds out what the columns are, and turns rows into features of a fixed width while it learns from them.
"""

from gossamer.rows.encoder import RowEncoder
from gossamer.rows.plan import KINDS, Column, Plan
from gossamer.rows.table import Coded, Table, as_table

__all__ = ["KINDS", "Coded", "Column", "Plan", "RowEncoder", "Table", "as_table"]
