"""Worker processes that run the sources of `fn.external_source(parallel=True)`."""
