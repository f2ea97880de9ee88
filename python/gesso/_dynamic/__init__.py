"""Dynamic mode: operators at once on `Tensor` and `Batch`. `api` has all names.

From below: `plans` run a function of operators; `storage` is data; `invocation` is one call; `tensor` and `batch` are
what users hold; `operators`, `arithmetic`, `slicing` and `readers` make calls."""
