"""What DALI says of mistakes with its plugin for TensorFlow: pattern of our message, DALI's words."""

TENSORFLOW = (
    (
        "a pipeline for TensorFlow is run from its file",
        "Note that some operators (e.g. Python Operators) cannot be used with TensorFlow Dataset API and DALIIterator.",
    ),
    (
        r"output `(\d+)` of the pipeline is \w+, and \w+ was promised",
        r"The type provided for output `\1` is not compatible with the type returned by DALI Pipeline",
    ),
    (
        r"output `(\d+)` of the pipeline has the shape .* was promised",
        r"The shape provided for output `\1` is not compatible with the shape returned by DALI Pipeline",
    ),
    (
        r"samples of output `(\d+)` have several shapes, and a tensor has one",
        r"Batch output at index '\1' from DALI pipeline is not uniform",
    ),
    (
        "`output_dtypes`: expected a `tf.DType`",
        "`output_dtypes` should be provided as single tf.DType value or a tuple of tf.DType values",
    ),
    (
        r"`output_shapes` is for (\d+) outputs, and `output_dtypes` for (\d+)",
        r"The two structures don't have the same sequence length. Input structure has length \1, while shallow structure has length \2.",
    ),
    (
        r"`(\w+)` is the old name of `output_\w+`, and both were given",
        r"Usage of `\1` is deprecated in favor of `output_\1`. Both arguments were provided, but only `output_\1` should be provided.",
    ),
    (
        r"output `(\d+)` of the pipeline is on the (\w+), and TensorFlow's device is the (\w+)",
        r"TF device and DALI device mismatch. TF device: \3, DALI device: \2 for output \1",
    ),
    (
        "`input_datasets` is an argument of `experimental.DALIDatasetWithInputs` alone",
        "Dataset inputs are allowed only in 'experimental.DALIDatasetWithInputs'.",
    ),
    (
        "the pipeline has external sources: those are for",
        "DALIDataset got a DALI pipeline containing External Source operator nodes.",
    ),
    (
        "`input_datasets`: expected a dictionary of names",
        "`input_datasets` must be a dictionary that maps input names (the `name` of External Source) to input datasets.",
    ),
    (
        "no external source that can be fed is called `(.*?)`",
        r"Did not find an External Source placeholder node with name='\1' in the provided pipeline",
    ),
    (
        "an external source without a `source` has no `name`, and cannot be fed by a data set",
        "Found placeholder External Source node (without `source` argument) in the Pipeline that was not named",
    ),
    (
        "`input_datasets` has nothing for the external sources",
        "Found External Source nodes in the Pipeline, that were not assigned any inputs.",
    ),
)
