"""The decorator `augmentation`."""

from ._augmentation import Augmentation


def augmentation(
    function=None,
    *,
    mag_range=None,
    randomly_negate=None,
    mag_to_param=None,
    param_device=None,
    name=None,
    augmentation_cls=None,
):
    """Makes an `Augmentation` of a function of samples and a parameter.

    mag_range: (lowest, highest) magnitude, or an array with one for each bin. Without it the parameter is None.
    randomly_negate: half of the magnitudes are negated.
    mag_to_param: makes the parameter, an array, of a magnitude.
    param_device: where the parameter is: "cpu", "gpu", or "auto" for where the samples are.
    """

    def decorate(function):
        return (augmentation_cls or Augmentation)(
            function,
            mag_range=mag_range,
            mag_to_param=mag_to_param,
            randomly_negate=randomly_negate,
            param_device=param_device,
            name=name,
        )

    if function is None:
        return decorate
    if not callable(function):
        raise Exception(f"`@augmentation` marks {function}, which cannot be called")
    if isinstance(function, Augmentation):
        raise Exception(
            f"The `@augmentation` was applied to already decorated Augmentation. `{function.name}` is one; its method `augmentation` gives one with other settings, "
            f"and `{function.name}.op` is the function.\nin: {function}"
        )
    return decorate(function)
