"""transformers' own processors, which conversions are compared with."""

from .description import ConversionError


def is_version_5(transformers):
    """Whether the package is of version 5 or newer."""
    return int(transformers.__version__.split(".")[0]) >= 5


def loaded(name, values, backend, folder=None):
    """The processor of the class `name`: of a folder what transformers reads there, so that a wrong reading here is
    seen."""
    import transformers

    endings = {"torchvision": ("", "Fast"), "pil": ("Pil", "")}
    if not is_version_5(transformers):
        endings = {"torchvision": ("Fast",), "pil": ("",)}
    names = (name + ending for ending in endings[backend])
    kind = next((getattr(transformers, each) for each in names if hasattr(transformers, each)), None)
    if kind is None:
        raise ImportError(f"transformers {transformers.__version__} has no class `{name}` by {backend}")
    if folder is None:
        marks = ("image_processor_type", "feature_extractor_type")
        return kind.from_dict({key: value for key, value in values.items() if key not in marks})
    choice = {"backend": backend} if is_version_5(transformers) else {"use_fast": backend == "torchvision"}
    found = transformers.AutoImageProcessor.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, **choice
    )
    if type(found) is not kind:
        raise ConversionError(
            f"`{folder}`: transformers makes a `{type(found).__name__}` of it, here it is read as `{kind.__name__}`"
        )
    return found
