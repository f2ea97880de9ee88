"""`fn.experimental.readers.fits`: images of FITS files."""

from .._tensors.enums import DALIDataType, dtype_of
from . import files, fits_file
from .source import Reader, schema

_OWN = {
    "file_root": ("STRING", None),
    "file_filter": ("STRING", "*.fits"),
    "file_list": ("STRING", None),
    "files": ("_STRING_VEC", None),
    "hdu_indices": ("_INT32_VEC", [2]),
    "dtypes": ("_DATA_TYPE_VEC", None),
}


class _Images:
    def __init__(self, paths, indices, dtypes):
        if not indices or min(indices) < 1:
            raise RuntimeError(f"`hdu_indices` must be numbers from 1, which is a file's first part; got {indices}.")
        if dtypes is not None and len(dtypes) != len(indices):
            raise RuntimeError(f"`dtypes` needs a type for each of `hdu_indices`: {len(dtypes)} and {len(indices)}.")
        self.paths, self.size = paths, len(paths)
        self._indices, self._dtypes = indices, dtypes

    def read(self, index):
        path = self.paths[index]
        images = fits_file.images(path, self._indices)
        for part, image, dtype in zip(self._indices, images, self._dtypes or []):
            if dtype_of(image) != DALIDataType(dtype):
                raise RuntimeError(
                    f"Part {part} of {path} has the type {image.dtype}, but `dtypes` says {DALIDataType(dtype).name}."
                )
        return images, path


class Fits(Reader):
    """Reads images of FITS files. `hdu_indices`: which parts of a file, one for each output; the first part is 1. Types
    are those of the files."""

    schema_name = "experimental__readers__Fits"
    schema = named_schema = schema("experimental__readers__Fits", "Reads images of FITS files.", _OWN, outputs=1)

    def output_count(self, node):
        return len(node.values_of("hdu_indices", [2]))

    def begin(self, node):
        """Finds the files."""
        get = node.values_of
        return _Images(files.of_arguments(get, "*.fits"), get("hdu_indices", [2]), get("dtypes"))
