"""Marks the pipeline that a Triton model is made of."""


def autoserialize(dali_pipeline):
    """Marks a function with `pipeline_def` as the one that `gesso serialize` and the plugin take from a file. At most
    one in a file."""
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise TypeError("`@triton.autoserialize` marks what `@pipeline_def` made")
    dali_pipeline._is_autoserialize = True
    return dali_pipeline
