"""`Policy`: which augmentations, how likely, how strong."""

import warnings

from ._augmentation import Augmentation


class Policy:
    """A name, a number of magnitude bins, and sub-policies: lists of (augmentation, probability, magnitude bin or None).

    For each sample one sub-policy is drawn; its augmentations are applied in order, each with its probability.
    """

    def __init__(self, name, num_magnitude_bins, sub_policies):
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise Exception(f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins}.")
        if not isinstance(sub_policies, (list, tuple)):
            raise Exception(f"The `sub_policies` must be a list or tuple of sub policies, got {type(sub_policies)}.")
        for sub_policy in sub_policies:
            if not isinstance(sub_policy, (list, tuple)):
                raise Exception(f"Each sub policy must be a list or tuple, got {sub_policy}.")
            for step in sub_policy:
                self._check_step(step)
        self.sub_policies = _uniquely_named(sub_policies)

    def _check_step(self, step):
        if not isinstance(step, (list, tuple)) or len(step) != 3:
            raise Exception(
                f"Each operation in sub policy must be specified as a triple: (augmentation, probability, magnitude). Got {step}."
            )
        augmentation, probability, magnitude = step
        if not isinstance(augmentation, Augmentation):
            raise Exception(
                f"Each augmentation in sub policies must be an instance of Augmentation. Got `{augmentation}`. Did you forget to use "
                "`@augmentation` decorator?"
            )
        if not isinstance(probability, (float, int)) or not 0 <= probability <= 1:
            raise Exception(
                f"Probability of applying the augmentation must be a number from `[0, 1]` range. Got `{probability}` for "
                f"augmentation `{augmentation.name}`."
            )
        if probability == 0:
            warnings.warn(
                f"The augmentation `{augmentation.name}` in policy `{self.name}` is used with probability 0 in one of the "
                "sub-policies.",
                stacklevel=4,
            )
        self._check_magnitude(augmentation, magnitude)

    def _check_magnitude(self, augmentation, magnitude):
        if magnitude is None:
            if augmentation.mag_range is not None:
                raise Exception(
                    f"The augmentation `{augmentation.name}` has `mag_range` specified, so the magnitude bin is required. However, got "
                    f"`None` in the policy `{self.name}`."
                )
            return
        if augmentation.mag_range is None:
            warnings.warn(
                f"The magnitude bin `{magnitude}` for augmentation `{augmentation.name}` in policy `{self.name}` will be ignored. The "
                "augmentation does not accept magnitudes (as it has no `mag_range` specified). You can specify `None` instead of "
                f"`{magnitude}` to silence this warning.",
                stacklevel=5,
            )
        if not isinstance(magnitude, int) or not 0 <= magnitude < self.num_magnitude_bins:
            raise Exception(
                f"Magnitude of the augmentation must be an integer from `[0, {self.num_magnitude_bins - 1}]` range. Got "
                f"`{magnitude}` for augmentation `{augmentation.name}`."
            )

    @property
    def augmentations(self):
        """All augmentations by name, sorted."""
        found = {augmentation for sub_policy in self.sub_policies for augmentation, _, _ in sub_policy}
        return {augmentation.name: augmentation for augmentation in sorted(found, key=lambda one: one.name)}

    def __repr__(self):
        steps = [repr([(one.name, p, magnitude) for one, p, magnitude in sub_policy]) for sub_policy in self.sub_policies]
        named = [f"'{name}': {one!r}" for name, one in self.augmentations.items()]

        def lines(parts):
            return "".join(("\n\t" if i == 0 else ",\n\t") + part for i, part in enumerate(parts))

        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins!r}, sub_policies=[{lines(steps)}], "
            f"augmentations={{{lines(named)}}})"
        )


def _uniquely_named(sub_policies):
    """The sub-policies; augmentations get numbers in front of their names if two share one."""
    ordered = list(dict.fromkeys(one for sub_policy in sub_policies for one, _, _ in sub_policy))
    if len({one.name for one in ordered}) == len(ordered):
        return tuple(tuple(sub_policy) for sub_policy in sub_policies)
    digits = len(str(len(ordered) - 1))
    renamed = {one: one.augmentation(name=f"{str(i).zfill(digits)}__{one.name}") for i, one in enumerate(ordered)}
    return tuple(tuple((renamed[one], p, magnitude) for one, p, magnitude in sub_policy) for sub_policy in sub_policies)
