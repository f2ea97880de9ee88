"""`Policy`: which augmentations, how likely, how strong."""

import warnings

from ._augmentation import Augmentation


class Policy:
    """A name, a number of magnitude bins, and sub-policies: lists of (augmentation, probability, magnitude bin or
    None).

    For each sample one sub-policy is drawn; its augmentations are applied in order, each with its probability.
    """

    def __init__(self, name, num_magnitude_bins, sub_policies):
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise Exception(f"`num_magnitude_bins` is {num_magnitude_bins}, expected an int above 0")
        if not isinstance(sub_policies, (list, tuple)):
            raise Exception(f"`sub_policies` is a {type(sub_policies)}, expected a list or tuple")
        for sub_policy in sub_policies:
            if not isinstance(sub_policy, (list, tuple)):
                raise Exception(f"a sub-policy is {sub_policy}, expected a list or tuple")
            for step in sub_policy:
                self._check_step(step)
        self.sub_policies = _uniquely_named(sub_policies)

    def _check_step(self, step):
        if not isinstance(step, (list, tuple)) or len(step) != 3:
            raise Exception(f"a step of a sub-policy is {step}, expected (augmentation, probability, magnitude)")
        augmentation, probability, magnitude = step
        if not isinstance(augmentation, Augmentation):
            raise Exception(
                f"a step of a sub-policy has `{augmentation}`, expected an augmentation: a function that `@augmentation` marks"
            )
        if not isinstance(probability, (float, int)) or not 0 <= probability <= 1:
            raise Exception(
                f"the probability of the augmentation `{augmentation.name}` is `{probability}`, expected a number from 0 to 1"
            )
        if probability == 0:
            warnings.warn(
                f"the policy `{self.name}` has the augmentation `{augmentation.name}` with a probability of 0: it is never applied",
                stacklevel=4,
            )
        self._check_magnitude(augmentation, magnitude)

    def _check_magnitude(self, augmentation, magnitude):
        if magnitude is None:
            if augmentation.mag_range is not None:
                raise Exception(
                    f"the policy `{self.name}` gives the augmentation `{augmentation.name}` no magnitude (None), which it needs for "
                    "its `mag_range`"
                )
            return
        if augmentation.mag_range is None:
            warnings.warn(
                f"the policy `{self.name}` gives the augmentation `{augmentation.name}` the magnitude `{magnitude}`, which has no effect as "
                "it has no `mag_range`; None says so without "
                f"this warning",
                stacklevel=5,
            )
        if not isinstance(magnitude, int) or not 0 <= magnitude < self.num_magnitude_bins:
            raise Exception(
                f"the magnitude of the augmentation `{augmentation.name}` is `{magnitude}`, expected an int from 0 to "
                f"{self.num_magnitude_bins - 1}"
            )

    @property
    def augmentations(self):
        """All augmentations by name, sorted."""
        found = {augmentation for sub_policy in self.sub_policies for augmentation, _, _ in sub_policy}
        return {augmentation.name: augmentation for augmentation in sorted(found, key=lambda one: one.name)}

    def __repr__(self):
        steps = [
            repr([(one.name, p, magnitude) for one, p, magnitude in sub_policy]) for sub_policy in self.sub_policies
        ]
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
