"""What the automatic augmentations share: translations by the size of images or by pixels, and selection with a good
error."""

from .. import augmentations as a
from ._args import MissingArgException
from ._select import select


def _limits(use_shape, absolute, relative, default_absolute, default_relative):
    """(height, width) of the largest translation."""
    if not isinstance(use_shape, bool):
        raise Exception(f"`use_shape` is {use_shape}, expected True or False")
    if use_shape and absolute is not None:
        raise Exception(
            "`max_translate_abs` is in pixels; with shapes of images translations are parts of them: `max_translate_rel`"
        )
    if not use_shape and relative is not None:
        raise Exception(
            "`max_translate_rel` is a part of an image's shape, which is not given; pixels are `max_translate_abs`"
        )
    given, default = (relative, default_relative) if use_shape else (absolute, default_absolute)
    limit = default if given is None else given
    return tuple(limit) if isinstance(limit, (tuple, list)) else (limit, limit)


def get_translations(
    use_shape, default_translate_abs, default_translate_rel, max_translate_abs=None, max_translate_rel=None
):
    """[horizontal, vertical] translation."""
    height, width = _limits(
        use_shape, max_translate_abs, max_translate_rel, default_translate_abs, default_translate_rel
    )
    x, y = (a.translate_x, a.translate_y) if use_shape else (a.translate_x_no_shape, a.translate_y_no_shape)
    return [x.augmentation((0, width), True), y.augmentation((0, height), True)]


def select_or_explain(augmentations, chosen, op_kwargs, caller, suite):
    """`select`; if the shape of the images is missing, the error says where to get it."""
    try:
        return select(augmentations, chosen, **op_kwargs)
    except MissingArgException as error:
        if error.missing_args != ["shape"] or error.augmentation.op not in (a.translate_x.op, a.translate_y.op):
            raise
        raise Exception(
            f"the augmentation `{error.augmentation.name}` needs the images' heights and widths: provide it as `shape` argument to `{caller}` call. "
            "`fn.peek_image_shape` reads it from encoded images. Or take augmentations that move by pixels, as `translate_x_no_shape`: "
            f"`{suite}` with `use_shape=False` has them. "
        ) from error


def without(augmentations, excluded, suite):
    """The augmentations whose names are not excluded."""
    names = [augmentation.name for augmentation in augmentations]
    for name in excluded or ():
        if name not in names:
            raise Exception(
                f"`excluded` names `{name}`, and {suite} has no such augmentation. It has {', '.join(names)}."
            )
    return [augmentation for augmentation in augmentations if augmentation.name not in (excluded or ())]


def check_bins(count):
    """Raises unless there is a bin."""
    if not isinstance(count, int) or count < 1:
        raise Exception(f"`num_magnitude_bins` is {count}, expected an int above 0")
