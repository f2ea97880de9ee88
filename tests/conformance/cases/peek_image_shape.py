from cases.decoders_image import FILES
from record import case, fn, source, types


@case(inputs=FILES)
def shapes():
    x = source("IMAGE", ndim=1)
    return (
        fn.peek_image_shape(x),
        fn.peek_image_shape(x, adjust_orientation=False),
        fn.peek_image_shape(x, image_type=types.GRAY),
        fn.peek_image_shape(x, image_type=types.ANY_DATA),
        fn.peek_image_shape(x, dtype=types.FLOAT),
    )
