"""Archives whose bytes follow from their entries alone: sorted, root's, of one time."""

import dataclasses
import gzip
import io
import tarfile

FILE, PROGRAM, FOLDER, LINK = 0o644, 0o755, 0o755, 0o777


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file by its bytes, or a link."""

    name: str
    data: bytes = b""
    mode: int = FILE
    # Where a symbolic link leads.
    link: str = ""
    # Another entry that this one is the same file as.
    same_as: str = ""


def tar(entries, epoch):
    """An uncompressed archive, with the folders that the names imply."""
    out = io.BytesIO()
    names = {entry.name: entry for entry in entries}
    folders = {name.rsplit("/", depth)[0] for name in names for depth in range(1, name.count("/") + 1)}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        # A file comes before those that are the same as it.
        for name in sorted(folders | set(names), key=lambda name: (name in names and names[name].same_as != "", name)):
            header = tarfile.TarInfo(name)
            header.mtime, header.uname, header.gname = epoch, "root", "root"
            if name in folders:
                header.type, header.mode = tarfile.DIRTYPE, FOLDER
                archive.addfile(header)
                continue
            entry = names[name]
            if entry.link:
                header.type, header.linkname, header.mode = tarfile.SYMTYPE, entry.link, LINK
            elif entry.same_as:
                header.type, header.linkname, header.mode = tarfile.LNKTYPE, entry.same_as, names[entry.same_as].mode
            else:
                header.mode, header.size = entry.mode, len(entry.data)
            archive.addfile(header, io.BytesIO(entry.data))
    return out.getvalue()


def gz(data):
    """Compressed, without a time of its own."""
    return gzip.compress(data, compresslevel=9, mtime=0)
