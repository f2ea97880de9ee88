"""Reads the fields of a definition: each is taken by its type and range, and one that nobody takes is an error."""

from .._comparison.words import in_one_line
from .description import CHANNELS, ConversionError

# Larger images than this are no input of a model: a wrong number in a definition.
LARGEST_SIDE = 16384
# Nor do means, deviations and factors leave these bounds.
LARGEST_NUMBER, SMALLEST_DIVISOR = 1e6, 1e-6
_REQUIRED = object()


def shown(value):
    """A value as a message has it: no long ones."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def is_number(value):
    """Whether it is a number of a sensible size, and no truth value."""
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST_NUMBER <= value <= LARGEST_NUMBER
    )


def is_side(value):
    """Whether it is a size of an image in pixels."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_SIDE


class Fields:
    """The fields of one definition; `finish` refuses those that were not taken."""

    def __init__(self, values, where, defaults=None, null_is_default=True):
        if not isinstance(values, dict):
            raise ConversionError(f"{where} is {shown(values)}, expected fields with names")
        self.values, self.where, self.defaults, self.left = values, where, defaults or {}, set(values)
        #: Whether a field that is null is one that is left out.
        self.null_is_default = null_is_default

    def fail(self, name, expected):
        """Says which field is wrong, what it is, and what would be right."""
        raise ConversionError(f"field `{in_one_line(name)}` of {self.where} is {shown(self.get(name))}: {expected}")

    def has(self, name):
        """Whether the definition has a value for it."""
        return self.values.get(name) is not None

    def get(self, name):
        """The field's value, or what the class has by default."""
        value = self.values.get(name)
        return self.defaults.get(name) if value is None and not self.is_null(name) else value

    def is_null(self, name):
        """Whether the field is null in place of the class's default."""
        return (
            not self.null_is_default
            and name in self.values
            and self.values[name] is None
            and self.defaults.get(name) is not None
        )

    def take(self, name, default=_REQUIRED):
        """The field's value; an error where there is none."""
        self.left.discard(name)
        if self.is_null(name):
            self.fail(name, "null is not the class's default; expected a value, or no such field")
        value = self.get(name)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise ConversionError(f"field `{name}` of {self.where} is missing, and there is no default")
        return default

    def flag(self, name, default=False):
        """True or false; null in place of a default is false."""
        if self.is_null(name):
            self.left.discard(name)
            return False
        value = self.take(name, default)
        if not isinstance(value, bool):
            self.fail(name, "expected true or false")
        return value

    def divisor(self, name, default=_REQUIRED):
        """A number above zero."""
        value = self.take(name, default)
        if value is not default and not (is_number(value) and value >= SMALLEST_DIVISOR):
            self.fail(name, f"expected a number from {SMALLEST_DIVISOR:g} to {LARGEST_NUMBER:g}")
        return value

    def side(self, name, default=_REQUIRED):
        """A size in pixels."""
        value = self.take(name, default)
        if value is not default and not is_side(value):
            self.fail(name, f"expected a whole number from 1 to {LARGEST_SIDE}")
        return value

    def sides(self, name, default=_REQUIRED):
        """Height and width: two sizes, or one for both."""
        value = self.take(name, default)
        if value is default:
            return value
        pair = [value] * 2 if is_side(value) else value
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and all(map(is_side, pair))):
            self.fail(name, f"expected one size or a height and a width, each from 1 to {LARGEST_SIDE}")
        return tuple(pair)

    def statistics(self, name, default=_REQUIRED, is_divisor=False):
        """A number for each channel."""
        value = self.take(name, default)
        if value is default:
            return value
        each = [value] * CHANNELS if is_number(value) else value
        if not (isinstance(each, (list, tuple)) and len(each) == CHANNELS and all(map(is_number, each))):
            self.fail(name, f"expected {CHANNELS} numbers up to {LARGEST_NUMBER:g}, or one for all channels")
        if is_divisor and min(each) < SMALLEST_DIVISOR:
            self.fail(name, f"values are divided by it: expected numbers from {SMALLEST_DIVISOR:g} on")
        return tuple(float(number) for number in each)

    def choice(self, name, choices, default=_REQUIRED):
        """One of a few values; returns what `choices` has for it."""
        value = self.take(name, default)
        if value is default:
            return value
        if not isinstance(value, (str, int)) or isinstance(value, bool) or value not in choices:
            self.fail(name, f"expected one of {', '.join(map(str, choices))}")
        return choices[value]

    def ignore(self, *names):
        """Fields that do not change what is made of an image."""
        self.left.difference_update(names)

    def only(self, name, *values, needed):
        """A field that may have these values alone; `needed` says what others would need."""
        value = self.take(name, None)
        if value is not None and not any(value is one or (type(value) is type(one) and value == one) for one in values):
            self.fail(name, needed)

    def finish(self, known=""):
        """Refuses fields that nobody took."""
        for name in sorted(self.left, key=str):
            if self.values[name] is not None:
                raise ConversionError(
                    f"field `{in_one_line(name)}` of {self.where} is {shown(self.values[name])}: it is not known, so what it does is not either{known}; "
                    "remove it if it changes no pixel"
                )
