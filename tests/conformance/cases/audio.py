from record import case, fn, noise, np, source, types

SIGNALS = {"X": [(s / 60).astype(np.float32) for s in noise((1000,), (300,), (77,), dtype=np.float32)]}
SPECTRA = {"X": [np.abs(s) for s in noise((33, 20), (33, 7), (33, 1), dtype=np.float32)]}


def x(ndim=1, dtype=types.FLOAT, **options):
    return source("X", dtype, **({"ndim": ndim} | options))


@case(inputs=SIGNALS, tol=1e-3)
def spectrograms():
    s = fn.spectrogram
    return (
        s(x(), window_length=64, window_step=16),
        s(x(), window_length=40, window_step=16, nfft=64),
        s(x(), window_length=30, window_step=7, layout="tf"),
        s(x(), window_length=64, window_step=16, center_windows=False),
        s(x(), window_length=64, window_step=33, reflect_padding=False, power=1),
        s(x(), window_length=4, window_step=2, window_fn=[1.0, 2, 3, 4]),
        s(x()),
    )


# Transforms that a device makes in memory that threads do not share: a power of two, a product of small numbers, a
# prime number.
@case(inputs={"X": [np.resize(s, 9000) for s in SIGNALS["X"][:1]]}, tol=0.2, batch_size=1)
def spectrograms_of_large_windows():
    s = fn.spectrogram
    return (
        s(x(), window_length=9000, window_step=9001, nfft=16384),
        s(x(), window_length=8800, window_step=9001, nfft=10000, layout="tf", power=1),
        s(x(), window_length=8999, window_step=9001, nfft=10007, center_windows=False),
    )


@case(inputs=SPECTRA, tol=1e-4)
def mel_filters():
    m = fn.mel_filter_bank
    return (
        m(x(2), nfilter=10, sample_rate=16000.0),
        m(x(2)),
        m(x(2), nfilter=5, sample_rate=8000.0, normalize=False, mel_formula="htk"),
        m(x(2), nfilter=8, sample_rate=16000.0, freq_low=300.0, freq_high=5000.0),
    )


@case(inputs={"X": [np.abs(s) for s in noise((2, 20, 33), (2, 7, 33), (2, 1, 9), dtype=np.float32)]}, tol=1e-4)
def mel_filters_of_windows():
    return fn.mel_filter_bank(source("X", types.FLOAT, layout="Ctf"), nfilter=10, sample_rate=16000.0)


@case(inputs=SPECTRA, tol=2e-3)
def cepstra():
    m = fn.mfcc
    return (
        m(x(2)),
        m(x(2), n_mfcc=5, normalize=True, lifter=22.0),
        m(x(2), n_mfcc=50, dct_type=3),
        m(x(2), dct_type=3, normalize=True),
        m(x(2), dct_type=4),
        m(x(2), dct_type=1, n_mfcc=7),
        m(x(2), dct_type=4, normalize=True),
        m(x(2), axis=1, n_mfcc=3),
    )


@case(inputs=SPECTRA, tol=2e-5)
def decibels():
    d = fn.to_decibels
    return d(x(2)), d(x(2), multiplier=20.0, reference=1.0, cutoff_db=-80.0), d(x(2), cutoff_db=-10.0), d(x(2) * 0.0)


@case(inputs=SIGNALS | {"C": [np.array(c, np.float32) for c in (0.5, 0, 1)]})
def preemphasis():
    p = fn.preemphasis_filter
    return (
        p(x()),
        p(x(), preemph_coeff=0.5, border="zero"),
        p(x(), border="reflect"),
        p(x(), preemph_coeff=source("C", types.FLOAT, 0)),
        p(x(), dtype=types.INT16, preemph_coeff=-90.0),
    )


TYPES = {
    np.uint8: types.UINT8,
    np.uint16: types.UINT16,
    np.int8: types.INT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.int64: types.INT64,
    np.uint32: types.UINT32,
    np.uint64: types.UINT64,
    np.float64: types.FLOAT64,
}
for dtype, of in TYPES.items():

    def declare(dtype=dtype, of=of):
        def function():
            return (
                fn.preemphasis_filter(x(dtype=of)),
                fn.preemphasis_filter(x(dtype=of), dtype=of),
                fn.preemphasis_filter(x(dtype=of), dtype=types.UINT8, preemph_coeff=0.0),
            )

        function.__name__ = f"preemphasis_from_{dtype.__name__}"
        case(inputs={"X": noise((100,), (1,), (9,), dtype=dtype)})(function)

    declare()


@case(inputs=SIGNALS, tol=2e-6)
def resampled():
    r = fn.audio_resample
    return (
        r(x(), in_rate=16000.0, out_rate=8000.0),
        r(x(), scale=1.5),
        r(x(), out_length=123),
        r(x(), scale=2.3, quality=0.0),
        r(x(), scale=0.3, quality=100.0),
        r(x(), scale=0.0),
        r(x(), scale=1.0),
        fn.experimental.audio_resample(x(), scale=0.9),
    )


@case(inputs={"X": [(s / 60).astype(np.float32) for s in noise((700, 2), (30, 2), (7, 2), dtype=np.float32)]}, tol=2e-6)
def resampled_channels():
    return fn.audio_resample(x(2), scale=1.7), fn.audio_resample(x(2), in_rate=44100.0, out_rate=16000.0)


@case(
    inputs=SIGNALS
    | {"R": [np.array(r, np.float32) for r in (8000, 16000, 44100)], "L": [np.array(n, np.int64) for n in (5, 0, 300)]},
    tol=2e-6,
)
def resampled_per_sample():
    return fn.audio_resample(x(), in_rate=source("R", types.FLOAT, 0), out_rate=16000.0), fn.audio_resample(
        x(), out_length=source("L", types.INT64, 0)
    )


LEVELS = {
    np.uint8: types.UINT8,
    np.uint16: types.UINT16,
    np.uint32: types.UINT32,
    np.int8: types.INT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
}
for dtype, of in LEVELS.items():

    def declare(dtype=dtype, of=of):
        def function():
            return fn.audio_resample(x(dtype=of), scale=0.7)

        function.__name__ = f"resampled_{dtype.__name__}"
        case(
            inputs={"X": noise((100,), (10,), (39,), dtype=dtype)},
            tol=1 if np.dtype(dtype).itemsize < 4 else 1024,
            mean=None,
        )(function)

        def to_float():
            return fn.audio_resample(x(dtype=of), scale=0.7, dtype=types.FLOAT)

        to_float.__name__ = f"resampled_{dtype.__name__}_to_float"
        case(inputs={"X": noise((100,), (10,), (39,), dtype=dtype)}, tol=2e-6)(to_float)

    declare()


def burst(length, begin, end, dtype=np.float32):
    signal = np.zeros(length, dtype)
    signal[begin:end] = 100
    return signal


@case(inputs={"X": [burst(100, 40, 60), burst(300, 0, 7), burst(90, 85, 90)]})
def regions():
    n = fn.nonsilent_region
    return (
        *n(x(), window_length=16),
        *n(x(), window_length=1, reset_interval=-1),
        *n(x(), window_length=8, reset_interval=16, cutoff_db=-3.0),
        *n(x(), window_length=32, reference_power=1e9),
        *n(x()),
    )


@case(inputs={"X": noise((3000,), (300,), (90,), dtype=np.float32)})
def regions_of_noise():
    return *fn.nonsilent_region(x(), window_length=16, cutoff_db=-1.0), *fn.nonsilent_region(
        x(), window_length=4, cutoff_db=-0.5, reset_interval=64
    )


for dtype in (np.uint8, np.int16, np.int32, np.uint64):

    def declare(dtype=dtype, of=TYPES[dtype]):
        def function():
            return tuple(fn.nonsilent_region(x(dtype=of), window_length=4, cutoff_db=-2.0))

        function.__name__ = f"regions_of_{dtype.__name__}"
        case(inputs={"X": noise((300,), (100,), (90,), dtype=dtype)})(function)

    declare()


@case(inputs=SIGNALS, tol=2e-2, devices=True)
def features(device):
    signal = x().gpu() if device == "gpu" else x()
    spectrum = fn.spectrogram(signal, window_length=64, window_step=16, nfft=128)
    mel = fn.mel_filter_bank(spectrum, sample_rate=16000.0, nfilter=20)
    return fn.mfcc(fn.to_decibels(mel, cutoff_db=-80.0), n_mfcc=13)


@case(inputs=SIGNALS, tol=1e-3, devices=True)
def spectrograms_on_a_device(device):
    signal = x().gpu() if device == "gpu" else x()
    s = fn.spectrogram
    return (
        s(signal, window_length=60, window_step=16),
        s(signal, window_length=25, window_step=10, nfft=50, power=1),
        s(signal, window_length=64, layout="tf"),
    )


@case(inputs=SIGNALS, tol=1e-4, devices=True)
def resampled_on_a_device(device):
    signal = x().gpu() if device == "gpu" else x()
    return fn.audio_resample(signal, in_rate=16000.0, out_rate=44100.0), fn.audio_resample(
        signal, scale=0.4, quality=20.0
    )


@case(inputs=SIGNALS, devices=True)
def signals_on_a_device(device):
    signal = x().gpu() if device == "gpu" else x()
    return (
        fn.preemphasis_filter(signal),
        fn.preemphasis_filter(signal, border="reflect", preemph_coeff=0.5),
        *fn.nonsilent_region(signal, window_length=16, cutoff_db=-3.0),
    )


@case(
    tol=2e-3,
    inputs={
        "X": noise((4, 10, 3), (6, 7, 5), (3, 16, 4), dtype=np.float32),
        "S": noise((10,), (4,), (33,), dtype=np.float32),
    },
)
def power_spectrum():
    x, s = source("X", types.FLOAT, 3), source("S", types.FLOAT, 1)
    return (
        fn.power_spectrum(s / 50),
        fn.power_spectrum(s / 50, nfft=16),
        fn.power_spectrum(s / 50, power=1),
        fn.power_spectrum(x / 50, axis=1),
        fn.power_spectrum(x / 50, axis=-3, nfft=5),
        fn.power_spectrum(x / 50),
    )
