"""Recognise files that are not tables of text by their magic bytes, so that an error can name the format."""

from __future__ import annotations

PARQUET = b"PAR1"
#: Magic bytes and the name of the format. The more specific come first.
BEGINNINGS: list[tuple[bytes, str]] = [
    (PARQUET, "a Parquet file (format='parquet' reads it)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (h5py reads it)"),
    (b"MATLAB 7.3 MAT-file", "a MATLAB 7.3 file (h5py reads it)"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file (scipy.io.loadmat reads it)"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Office file (.xls; save it as CSV)"),
    (b"\x93NUMPY", "a NumPy array (numpy.load reads it; open_stream takes arrays)"),
    (b"\x89GSM\r\n\x1a\n", "a file of Gossamer (gossamer.load reads it)"),
    (b"ARROW1\x00\x00", "an Arrow or Feather file (pyarrow reads it; open_stream takes frames)"),
    (b"FEA1", "a Feather file (pyarrow reads it; open_stream takes frames)"),
    (b"ORC", "an ORC file (pyarrow reads it)"),
    (b"Obj\x01", "an Avro file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"RDX2\n", "an R data file"), (b"RDX3\n", "an R data file"),
    (b"$FL2@(#)", "an SPSS file"), (b"<stata_dta>", "a Stata file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive (unpack it first)"),
    (b"Rar!\x1a\x07", "a RAR archive (unpack it first)"),
    (b"\x1f\x9d", "a file packed by compress (.Z; unpack it first)"),
    (b"\x04\x22\x4d\x18", "an lz4 archive (unpack it first)"),
    (b"\xff\x06\x00\x00sNaPpY", "a snappy archive (unpack it first)"),
    (b"]\x00\x00", "an lzma archive (unpack it first, or pack it as .xz)"),
    (b"%PDF-", "a PDF document"), (b"\x89PNG\r\n\x1a\n", "a PNG picture"), (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF87a", "a GIF picture"), (b"GIF89a", "a GIF picture"), (b"\x7fELF", "a program"),
    (b"<?xml", "an XML document"), (b"<!DOCTYPE", "an HTML page"), (b"<!doctype", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"\xff\xfe\x00\x00", "text in UTF-32 (encoding='utf-32' reads it)"),
    (b"\xff\xfe", "text in UTF-16 (encoding='utf-16' reads it)"),
    (b"\xfe\xff", "text in UTF-16 (encoding='utf-16' reads it)"),
]  # fmt: skip
#: Formats that are zip archives, by the names of the files inside.
ZIPPED: list[tuple[bytes, str]] = [
    (b"xl/", "an Excel workbook (.xlsx; save it as CSV, or read it with pandas)"),
    (b"opendocument.spreadsheet", "an OpenDocument spreadsheet (save it as CSV)"),
    (b"word/", "a Word document"),
    (b".npy", "an archive of NumPy arrays (numpy.load reads it; open_stream takes arrays)"),
    (b"data.pkl", "a PyTorch file"),
    (b"[Content_Types].xml", "an Office document (.xlsx? save it as CSV)"),
]


def identify(start: bytes) -> str | None:
    """The format of a file that begins with these bytes; None for text.

    >>> identify(b"PK\\x03\\x04...xl/workbook.xml"), identify(b"a,b\\n1,2\\n")
    ('an Excel workbook (.xlsx; save it as CSV, or read it with pandas)', None)
    """
    for beginning, what in BEGINNINGS:
        if start.startswith(beginning):
            return what
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return next((what for name, what in ZIPPED if name in start), "a zip archive (unpack it first)")
    if start[:1] == b"\x80" and len(start) > 2 and 2 <= start[1] <= 5 and (start[2:3] in b"\x95}](cX\x8c"):
        return "a Python pickle (load it where you trust it; open_stream takes arrays and frames)"
    if start[257:262] == b"ustar":
        return "a tar archive (unpack it first)"
    if start.count(0) >= max(8, len(start) // 100):  # one or two may be in a text
        return "binary data (or text of 16 bits: encoding='utf-16-le' or 'utf-16-be' would read that)"
    return None
