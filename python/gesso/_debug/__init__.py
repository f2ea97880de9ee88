"""Debug mode: a definition runs anew for each batch, and each of its operators runs when it is called.

`pipeline` is what `pipeline_def(debug=True)` makes, `calls` what operators come to, `call` one of them, `node` what
they return, `given` what they are given, `branches` what splits and merges batches."""
