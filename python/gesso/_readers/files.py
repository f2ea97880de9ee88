"""Lists of files: by folders, by a text file, or as they are given."""

import fnmatch
import os

IMAGES_AND_SOUND = "*.jpg *.jpeg *.png *.bmp *.tif *.tiff *.pnm *.ppm *.pgm *.pbm *.jp2 *.webp *.flac *.ogg *.wav".split()


def _matches(name, patterns, case_sensitive):
    if not case_sensitive:
        name, patterns = name.lower(), [pattern.lower() for pattern in patterns]
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def in_folders(root, file_filters=None, dir_filters=None, case_sensitive=False):
    """(path, label) of the files in the folders of `root`; the label is the number of the folder, in order of their names."""
    folders = sorted(name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name)))
    if dir_filters:
        folders = [name for name in folders if _matches(name, dir_filters, case_sensitive)]
    patterns = file_filters or IMAGES_AND_SOUND
    found = []
    for label, folder in enumerate(folders):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if _matches(name, patterns, case_sensitive):
                found.append((os.path.join(root, folder, name), label))
    return found


def below(root, patterns):
    """Paths of all files below `root` that match, sorted."""
    found = []
    for folder, _, names in os.walk(root, followlinks=True):
        found += [os.path.join(folder, name) for name in names if _matches(name, patterns, True)]
    return sorted(found)


def of_list(path, root):
    """(path, label) of each line `path label` of a text file; paths are relative to `root`, else to the list's folder."""
    base = root or os.path.dirname(os.path.abspath(path))
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if not words:
                continue
            name, _, label = line.strip().rpartition(" ")
            try:
                found.append((os.path.join(base, name.strip()), int(label)))
            except ValueError:
                raise RuntimeError(f'Incorrect format of the list file "{path}":{number}: expected `path label`, got {line!r}.') from None
    return found


def of_arguments(get, pattern):
    """The paths that a reader's arguments name: `files`, the lines of `file_list`, or all below `file_root` that match `file_filter`."""
    root, listed, given = get("file_root"), get("file_list"), get("files")
    if listed is not None and given is not None:
        raise RuntimeError("File paths can be provided through `files` or `file_list` but not both.")
    if given is not None:
        return [os.path.join(root, path) if root else path for path in given]
    if listed is not None:
        base = root or os.path.dirname(os.path.abspath(listed))
        with open(listed, encoding="utf-8") as file:
            return [os.path.join(base, line.strip()) for line in file if line.strip()]
    if root is None:
        raise RuntimeError("Either `file_root`, `files` or `file_list` must be specified.")
    return below(root, [get("file_filter", pattern)])
