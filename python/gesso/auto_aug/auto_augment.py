"""AutoAugment: for each sample one of the policy's sub-policies. The policies themselves are in `_policies`."""

from collections.abc import Callable

import numpy as np

from .. import fn, types
from . import augmentations as a
from ._policies import get_image_net_policy, get_reduced_cifar10_policy, get_reduced_image_net_policy, get_svhn_policy
from .core._args import forbid_unused_kwargs
from .core._bins import signed_bin
from .core._utils import select_or_explain
from .core.policy import Policy  # noqa: F401

_POLICIES: dict[str, Callable] = {
    "image_net": get_image_net_policy,
    "reduced_image_net": get_reduced_image_net_policy,
    "svhn": get_svhn_policy,
    "reduced_cifar10": get_reduced_cifar10_policy,
}
_WITHOUT_TRANSLATION = ("reduced_image_net",)
# The bin of augmentations that have no magnitude: never read.
_NO_BIN = -999


def auto_augment(
    data,
    policy_name="image_net",
    shape=None,
    fill_value=128,
    interp_type=None,
    max_translate_abs=None,
    max_translate_rel=None,
    seed=None,
):
    """Applies one of the known policies: "image_net", "reduced_image_net", "svhn" or "reduced_cifar10".

    shape: the images' shapes, height first, so that translations are parts of them; else they are pixels.
    """
    if not isinstance(policy_name, str) or policy_name not in _POLICIES:
        names = ", ".join(f"`{name}`" for name in _POLICIES)
        raise Exception(f"`policy_name` is none of {names}")
    limits = {"shape": shape, "max_translate_abs": max_translate_abs, "max_translate_rel": max_translate_rel}
    options = {"fill_value": fill_value, "interp_type": interp_type}
    if shape is not None:
        options["shape"] = shape
    if policy_name in _WITHOUT_TRANSLATION:
        given = next((name for name, value in limits.items() if value is not None), None)
        if given is not None:
            raise Exception(
                f"the policy `{policy_name}` has no translations, which alone want the shape; `{given}` must be left out there"
            )
        policy = _POLICIES[policy_name]()
    else:
        policy = _POLICIES[policy_name](
            use_shape=shape is not None, max_translate_abs=max_translate_abs, max_translate_rel=max_translate_rel
        )
    return apply_auto_augment(policy, data, seed, **options)


def auto_augment_image_net(
    data, shape=None, fill_value=128, interp_type=None, max_translate_abs=None, max_translate_rel=None, seed=None
):
    """`auto_augment` with the policy for ImageNet."""
    return auto_augment(data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)


def apply_auto_augment(policy, data, seed=None, **kwargs):
    """AutoAugment with a policy of one's own."""
    if len(policy.sub_policies) == 0:
        raise Exception(f"Cannot run empty policy. Got {policy} in `apply_auto_augment` call.")
    length = max(len(sub_policy) for sub_policy in policy.sub_policies)
    luck = fn.random.uniform(range=[0, 1], shape=(length,), dtype=types.FLOAT, seed=seed)
    sub_policy = fn.random.uniform(values=list(range(len(policy.sub_policies))), seed=seed, dtype=types.INT32)
    probabilities = types.Constant(_table(policy, np.float32, 0.0, lambda one, p, magnitude: p))[sub_policy]
    bins = types.Constant(_table(policy, np.int32, 0, _bin_of))[sub_policy]
    matrix, augmentations = _sub_policy_to_augmentation_matrix_map(policy)
    chosen = types.Constant(matrix)[sub_policy]
    if any(one.randomly_negate for one in policy.augmentations.values()):
        bins = signed_bin(bins, seed=seed, shape=(length,))
    forbid_unused_kwargs(policy.augmentations.values(), kwargs, "apply_auto_augment")
    for i in range(length):
        if luck[i] < probabilities[i]:
            options = dict(data=data, magnitude_bin=bins[i], num_magnitude_bins=policy.num_magnitude_bins, **kwargs)
            data = select_or_explain(augmentations[i], chosen[i], options, "apply_auto_augment", "get_image_net_policy")
    return data


def _bin_of(one, p, magnitude):
    return _NO_BIN if magnitude is None else magnitude


def _table(policy, dtype, missing, value):
    """A row for each sub-policy, a column for each step."""
    length = max(len(sub_policy) for sub_policy in policy.sub_policies)
    rows = [[value(*step) for step in sub_policy] for sub_policy in policy.sub_policies]
    return np.array([row + [missing] * (length - len(row)) for row in rows], dtype=dtype)


def _sub_policy_to_augmentation_matrix_map(policy):
    """(for each sub-policy and step the index of its augmentation, for each step the list of augmentations)

    The last one of each list changes nothing: for sub-policies that are shorter.
    """
    length = max(len(sub_policy) for sub_policy in policy.sub_policies)
    steps = [
        list(dict.fromkeys(sub_policy[i][0] for sub_policy in policy.sub_policies if i < len(sub_policy)))
        for i in range(length)
    ]
    matrix = [
        [steps[i].index(sub_policy[i][0]) if i < len(sub_policy) else len(steps[i]) for i in range(length)]
        for sub_policy in policy.sub_policies
    ]
    return np.array(matrix, dtype=np.int32), [step + [a.identity] for step in steps]
