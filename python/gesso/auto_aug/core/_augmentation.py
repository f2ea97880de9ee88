"""`Augmentation`: a function of samples and a parameter, with the range of its magnitudes."""

import warnings

import numpy as np

from ... import types
from ...data_node import DataNode
from ._args import MissingArgException, accepted, count_positional, missing
from ._bins import SignedMagnitudeBin, signed_bin, with_signs

_KEPT = object()


def _holds_node(value):
    return isinstance(value, DataNode) or isinstance(value, (tuple, list)) and any(_holds_node(x) for x in value)


class Augmentation:
    """Calls `op(data, parameter, ...)`; made by the decorator `augmentation`."""

    def __init__(self, op, mag_range=None, randomly_negate=None, mag_to_param=None, param_device=None, name=None):
        self._op = op
        self._config = {
            "mag_range": mag_range,
            "mag_to_param": mag_to_param,
            "randomly_negate": randomly_negate,
            "param_device": param_device,
            "name": name,
        }
        count = count_positional(op)
        if count <= 1:
            raise Exception(
                f"{op} accepts {count} positional argument(s), but the functions decorated with `@augmentation` need at least two: the samples "
                f"and the parameter\nin: {self}"
            )

    def __repr__(self):
        parts = [repr(self._op)] + [f"{key}={value!r}" for key, value in self._config.items() if value is not None]
        return f"Augmentation({', '.join(parts)})"

    @property
    def op(self):
        """The function."""
        return self._op

    @property
    def mag_range(self):
        """(lowest, highest) magnitude, or an array of magnitudes, or None."""
        return self._config["mag_range"]

    @property
    def mag_to_param(self):
        """What makes a parameter of a magnitude."""
        return self._config["mag_to_param"] or np.array

    @property
    def randomly_negate(self):
        """Whether half of the magnitudes are negated."""
        return self._config["randomly_negate"] or False

    @property
    def param_device(self):
        """Where the parameter is: `cpu`, `gpu`, or `auto` for where the samples are."""
        return self._config["param_device"] or "cpu"

    @property
    def name(self):
        """Its name."""
        return self._config["name"] or self._op.__name__

    def augmentation(
        self,
        mag_range=_KEPT,
        randomly_negate=_KEPT,
        mag_to_param=_KEPT,
        param_device=_KEPT,
        name=_KEPT,
        augmentation_cls=None,
    ):
        """The same augmentation with other settings."""
        given = {
            "mag_range": mag_range,
            "mag_to_param": mag_to_param,
            "randomly_negate": randomly_negate,
            "param_device": param_device,
            "name": name,
        }
        config = {key: self._config[key] if value is _KEPT else value for key, value in given.items()}
        return (augmentation_cls or type(self))(self._op, **config)

    def __call__(self, data, *, magnitude_bin=None, num_magnitude_bins=None, **kwargs):
        """Augments `data`; `magnitude_bin` of `num_magnitude_bins` says how much, a number or one for each sample."""
        device = (data.device or "cpu") if self.param_device == "auto" else self.param_device
        parameter = self._parameter(magnitude_bin, num_magnitude_bins, device)
        lacking = missing(self._op, kwargs)
        if lacking:
            raise MissingArgException(
                f"the augmentation `{self.name}` needs arguments that were not provided to the call: {', '.join(lacking)}",
                augmentation=self,
                missing_args=lacking,
            )
        return self._op(data, parameter, **accepted(self._op, kwargs))

    def _get_magnitudes(self, count):
        given = self.mag_range
        if given is None:
            return None
        if isinstance(given, np.ndarray):
            if count is not None and len(given) != count:
                raise Exception(
                    f"the augmentation `{self.name}` has {len(given)} magnitudes in `mag_range`, and `num_magnitude_bins` is "
                    f"{count}: expected as many"
                )
            return given
        if count is None:
            raise Exception(
                f"the augmentation `{self.name}` is called without `num_magnitude_bins`, which says what `magnitude_bin` is a part of\n"
                f"in: {self}"
            )
        if not hasattr(given, "__len__") or len(given) != 2:
            raise Exception(
                f"`mag_range` of the augmentation `{self.name}` is `{given}`, expected a pair (lowest, highest) or an array with all magnitudes"
            )
        lowest, highest = given
        return np.linspace(lowest, highest, count, dtype=np.float32)

    def _map_mag_to_param(self, magnitude):
        parameter = self.mag_to_param(magnitude)
        if _holds_node(parameter):
            raise Exception(
                f"The augmentation `{self.name}` has a `mag_to_param` that returned a `DataNode`. This callback must return parameter that is "
                "`np.ndarray` or what numpy makes one of: parameters are computed once, before the pipeline runs. What needs operators belongs into the augmentation's own function.\n"
                f"in: {self}"
            )
        return np.array(parameter)

    def _map_mags_to_params(self, magnitudes):
        found = [self._map_mag_to_param(magnitude) for magnitude in magnitudes]
        for parameter, magnitude in zip(found, magnitudes):
            if parameter.shape != found[0].shape or parameter.dtype != found[0].dtype:
                raise Exception(
                    f"`mag_to_param` of the `{self.name}` augmentation must return the arrays of the same type and shape for all magnitudes: that of "
                    f"{magnitudes[0]} has shape {found[0].shape} and type {found[0].dtype}, that of {magnitude} "
                    f"has shape {parameter.shape} and type {parameter.dtype}.\nin: {self}"
                )
        return np.array(found)

    def _parameter(self, chosen, count, device):
        magnitudes = self._get_magnitudes(count)
        if magnitudes is None:
            return None
        if chosen is None:
            raise Exception(
                f"the augmentation `{self.name}` has a `mag_range` and is called without `magnitude_bin`, which chooses from it\nin: {self}"
            )
        if self.randomly_negate:
            return self._negated(magnitudes, chosen, device)
        if isinstance(chosen, SignedMagnitudeBin):
            chosen = chosen.bin
        if isinstance(chosen, int):
            return types.Constant(self._map_mag_to_param(magnitudes[chosen]), device=device)
        return types.Constant(self._map_mags_to_params(magnitudes), device=device)[chosen]

    def _negated(self, magnitudes, chosen, device):
        if not isinstance(chosen, SignedMagnitudeBin):
            chosen = signed_bin(chosen)
            warnings.warn(
                f"the augmentation `{self.name}` turns signs of magnitudes at random (`randomly_negate`), but unsigned `magnitude_bin` was passed to the "
                "augmentation call: it draws the signs itself. Where a batch is split among several augmentations it is quicker to draw them once, before: "
                "`signed_bin(magnitude_bin)`.",
                Warning,
                stacklevel=4,
            )
        if isinstance(chosen.bin, int):
            magnitudes, index = [magnitudes[chosen.bin]], chosen.random_sign
        else:
            index = chosen.signed_magnitude_idx
        return types.Constant(self._map_mags_to_params(with_signs(magnitudes)), device=device)[index]
