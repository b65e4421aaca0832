"""Power loss: what a disk holds if everything that was not synced is lost.

The server runs under strace, which records every write to the journal's files, every sync, and every answer sent. From
that record the files are made again as a disk would hold them at any moment: what was synced, and of what was written
after the last sync nothing, all, or any part, as a disk may. A server on those files must know every row that was
acknowledged before that moment.
"""

import re
import shutil
import subprocess

#: The calls that matter; -y names the file of a handle, -xx shows bytes as hexadecimal.
STRACE = ["strace", "-f", "-y", "-xx", "-s", "200000", "-e",
          "trace=pwrite64,write,writev,sendto,sendmsg,fdatasync,fsync,ftruncate,unlink"]  # fmt: skip
LINE = re.compile(r"(\d+) +(\w+)\((\d+)<([^>]*)>(.*)")
UNFINISHED = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)$")
BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


def can_trace():
    """Whether processes may be traced here."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


def unescape(text):
    return bytes.fromhex(text.replace("\\x", ""))


def decode(path):
    return unescape(path).decode() if path.startswith("\\x") else path


def calls(record):
    """The calls of a record that succeeded, in the order in which they ended: name, file, arguments, result.

    A record that ends within a line is of a tracer that was killed: that call did not end.
    """
    begun = {}
    for line in record.read_text().split("\n")[:-1]:
        if (found := UNFINISHED.match(line)) is not None:
            begun[found[1]] = found[2]
            continue
        if (found := RESUMED.match(line)) is not None:
            line = f"{found[1]} {begun.pop(found[1])}{found[3]}"
        if (found := LINE.match(line)) is not None:
            arguments, _, result = found[5].rpartition(" = ")
            if result.isdecimal():  # neither an error, nor "?" of a process that was killed
                yield found[2], decode(found[4]), arguments, int(result)


class Disk:
    """The files of a journal as a disk holds them: synced bytes, and the writes since the last sync of each file."""

    def __init__(self, names):
        self.synced = {name: bytearray() for name in names}
        self.loose = {name: [] for name in names}

    def write(self, name, offset, data):
        self.loose[name].append((offset, data))

    def truncate(self, name, size):
        self.loose[name].append((size, None))

    def sync(self, name):
        for change in self.loose[name]:
            apply(self.synced[name], *change)
        self.loose[name] = []

    def after_loss(self, rng, share):
        """The files after a loss of power: of the unsynced writes each is there with this probability."""
        files = {}
        for name, data in self.synced.items():
            made = bytearray(data)
            for change in self.loose[name]:
                if rng.random() < share:
                    apply(made, *change)
            files[name] = bytes(made)
        return files


def apply(file, offset, data):
    """Change the bytes of a file: write at an offset, or cut it there."""
    if data is None:
        del file[offset:]
        file.extend(b"\0" * (offset - len(file)))
        return
    if len(file) < offset:
        file.extend(b"\0" * (offset - len(file)))
    file[offset : offset + len(data)] = data


def moments(record, folder):
    """Walk through a record; yields the disk and the answers sent so far, at every sync and every answer."""
    names = ["gossamer.db", "gossamer.db-wal"]
    disk, sent = Disk(names), b""
    for name, path, arguments, result in calls(record):
        file = path.rpartition("/")[2]
        if path.startswith(str(folder)) and file in names:
            if name == "pwrite64":
                data, cut = BYTES.search(arguments).groups()
                assert cut is None, "strace has cut a write"
                offset = int(arguments.rstrip(" )").rpartition(", ")[2])
                disk.write(file, offset, unescape(data)[:result])
            elif name == "ftruncate":
                disk.truncate(file, int(re.search(r", (\d+)\)", arguments)[1]))
            elif name in ("fdatasync", "fsync"):
                yield disk, sent
                disk.sync(file)
                yield disk, sent
        elif path.startswith(("TCP:", "socket:")) and name in ("write", "writev", "sendto", "sendmsg"):
            sent += b"".join(unescape(data) for data, _ in BYTES.findall(arguments))[:result]
            yield disk, sent
