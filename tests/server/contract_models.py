"""The repository of the contract's tests: one model a rule, all from recorded pipelines."""

from recorded import cases, write_model

CASES = cases("contract")
CLASSIFY = cases("pipelines")["classify"]
DECODE_ONLY = cases("pipelines")["decode_only"]

# Long enough for most requests that are sent at once to meet in one batch; a test that must know uses `filled`.
WAIT = "dynamic_batching { max_queue_delay_microseconds: 300000 }\n"


def config(*lines, backend="dali"):
    return "".join([f'backend: "{backend}"\n', *(line + "\n" for line in lines)])


def tensor(role, name, kind, *dims, more=""):
    return f'{role} {{ name: "{name}" data_type: TYPE_{kind} dims: {list(dims)} {more} }}'


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def filled(requests):
    """So many requests of one sample are always one batch: it leaves when it is full, and hardly ever for another
    reason."""
    return [f"max_batch_size: {requests}", "dynamic_batching { max_queue_delay_microseconds: 60000000 }"]


X = tensor("input", "X", "FP32", -1)


def write_repository(folder):
    """All models, under the name of DALI's backend as their authors wrote them."""

    def write(name, pipeline, *lines, **options):
        return write_model(folder, name, pipeline, config(*lines), **options)

    identity = CASES["identity"].pipeline
    write("identity", identity, "max_batch_size: 256", X, tensor("output", "OUT", "FP32", -1))
    write("identity_cpu", CASES["identity_made_for_gpu"].pipeline, "instance_group [ { kind: KIND_CPU count: 2 } ]")
    write("two_inputs", CASES["two_inputs"].pipeline)
    write("classify", CLASSIFY.pipeline, "max_batch_size: 32")
    write("crops", CASES["crops"].pipeline, parameter("split_along_outer_axis", "EACH"), WAIT)
    write("crops_whole", CASES["crops"].pipeline)
    write("unbatched", identity, "max_batch_size: 0")
    write("unbatched_listed", identity, "max_batch_size: 0", tensor("input", "X", "FP32", -1, -1))
    write("unbatched_images", CLASSIFY.pipeline, "max_batch_size: 0")
    write("scalars_unbatched", CASES["plus_one"].pipeline, "max_batch_size: 0", tensor("input", "X", "FP32", -1, 3))
    write("merging", CLASSIFY.pipeline, *filled(len(CLASSIFY.samples)), tensor("input", "IMAGE", "UINT8", -1))
    write("strings", CLASSIFY.pipeline, "max_batch_size: 32", tensor("input", "IMAGE", "STRING", 1))
    write("two_outputs", cases("pipelines")["two_outputs"].pipeline, 'output { name: "FIRST" }')
    write("any_size", DECODE_ONLY.pipeline)
    size = tensor("input", "SIZE", "FP32", 2, more="optional: true")
    image = tensor("input", "IMAGE", "UINT8", -1)
    write("sized", CASES["sized"].pipeline, "max_batch_size: 8", image, size, parameter("default.SIZE", "18, 22"))
    write("sized_strict", CASES["sized"].pipeline, "max_batch_size: 8", image, size.replace("[2]", "[-1]"))
    zeros = tensor("input", "X", "FP32", 3, more="optional: true")
    write("zeros", CASES["plus_one"].pipeline, "max_batch_size: 8", zeros)
    write("threads", CLASSIFY.pipeline, parameter("num_threads", "3"))
    for policy in ("latest { num_versions: 2 }", "all {}", "specific { versions: [1, 3] }"):
        name = "versions_" + policy.split()[0]
        made = write(name, CASES["plus_one"].pipeline, f"version_policy {{ {policy} }}", X)
        for version, pipeline in ((2, "plus_two"), (3, "plus_three")):
            (made / str(version)).mkdir()
            (made / str(version) / "model.dali").write_bytes(CASES[pipeline].pipeline)
    write_ensemble(folder)
    return folder


def write_ensemble(folder):
    """Two models behind one another: what DALI's QA does on a GPU, wherever this runs."""
    write_model(
        folder,
        "first",
        CASES["plus_one"].pipeline,
        config("max_batch_size: 16", X, tensor("output", "SUM", "FP32", -1)),
    )
    write_model(
        folder,
        "second",
        CASES["plus_two"].pipeline,
        config("max_batch_size: 16", X, tensor("output", "SUM", "FP32", -1)),
    )
    steps = [("first", "X", "BETWEEN"), ("second", "BETWEEN", "SUM")]
    step = 'step [ {{ model_name: "{}" model_version: -1 input_map {{ key: "X" value: "{}" }} output_map {{ key: "SUM" value: "{}" }} }} ]'
    lines = ['platform: "ensemble"', "max_batch_size: 16", X, tensor("output", "SUM", "FP32", -1)]
    lines += ["ensemble_scheduling {", *(step.format(*each) for each in steps), "}"]
    (folder / "both" / "1").mkdir(parents=True)
    (folder / "both" / "config.pbtxt").write_text("\n".join(lines))
