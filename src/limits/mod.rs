//! Named limits for input that we do not trust, each with what it stops. Nothing else in the crate compares against
//! a bare number for safety.

mod videos;

pub use videos::*;

/// Bytes of a serialized pipeline. The largest from DALI's own augmentations is 1.5 MB. Parsing can take a hundred
/// times the memory, so this stops a file that takes more than a gigabyte.
pub const MAX_PIPELINE_BYTES: usize = 8 << 20;

/// Bytes of a pipeline's description in JSON; that of the largest file has about three times its bytes. Reading can
/// take ten times the memory.
pub const MAX_DESCRIPTION_BYTES: usize = 4 * MAX_PIPELINE_BYTES;

/// Inputs plus outputs of a pipeline. Stops work that is quadratic in them.
pub const MAX_PIPELINE_TENSORS: usize = 1_024;

/// Bytes of a name in a pipeline file. Stops log lines and errors of megabytes.
pub const MAX_NAME_BYTES: usize = 256;

/// Bytes of the header of a file of numpy's; those that numpy writes have less than 200, and the first version cannot
/// have more. Stops a header that is all of a large file.
pub const MAX_NUMPY_HEADER_BYTES: usize = 1 << 16;

/// Operators in one pipeline (`rand_augment` with three steps holds 486). Stops a file that makes planning take
/// minutes.
pub const MAX_OPERATORS: usize = 16_384;

/// Inputs plus outputs of one operator. Stops quadratic work in checks over a node's edges.
pub const MAX_EDGES_PER_OPERATOR: usize = 256;

/// Elements of one list argument (look-up tables hold up to 65,536 entries).
pub const MAX_LIST_ARGUMENT: usize = 1 << 20;

/// Samples of a data set that a reader lists. Stops lists and shuffling buffers that fill memory.
pub const MAX_DATASET_SAMPLES: usize = 1 << 30;

/// Folders within folders that a reader looks into. Stops links that lead back from being followed for ever.
pub const MAX_FOLDER_DEPTH: usize = 64;

/// Files of many samples that a reader keeps open. Stops a data set of thousands of them from using up what a process
/// may open.
pub const MAX_OPEN_PIECES: usize = 128;

/// Bytes of a long name or of a header of the pax kind in a tar archive. Stops a size in a header from filling memory.
pub const MAX_TAR_NAME_BYTES: u64 = 1 << 20;

/// Bytes of a page of an LMDB file; LMDB makes none that is larger. Stops a size in a header from filling memory.
pub const MAX_LMDB_PAGE_BYTES: usize = 1 << 16;

/// Columns of a table of labels. Stops a line of commas from becoming a text for each of them.
pub const MAX_CSV_COLUMNS: usize = 1 << 16;

/// Bytes of an index, a list or annotations that a reader takes. Stops a file that fills memory; annotations of the
/// largest public sets have a gigabyte.
pub const MAX_READER_TEXT_BYTES: usize = 4 << 30;

/// Dimensions of a sample. Stops shapes that would overflow fixed-size index tables.
pub const MAX_NDIM: usize = 16;

/// Frames of a batch of sequences whose arguments differ from frame to frame. Stops frames without
/// elements, which cost a request nothing.
pub const MAX_FRAMES: usize = 1 << 20;

/// Tiles of an image along either side. Stops a file whose tables for them would fill memory.
pub const MAX_TILES: usize = 1_024;

/// Samples in a batch. Stops a pipeline file whose `batch_size` would make us reserve memory for billions.
pub const MAX_BATCH_SIZE: usize = 65_536;

/// Worker threads of one instance. Stops a file or configuration that asks for millions.
pub const MAX_THREADS: usize = 1_024;

/// Batches of one instance that are worked on at the same time. Stops a configuration that asks for thousands, each of
/// which has threads and memory of its own.
pub const MAX_BATCHES_IN_FLIGHT: usize = 16;

/// Milliseconds that a model may let a request take (an hour). Stops a limit that is none.
pub const MAX_REQUEST_MS: u64 = 3_600_000;

/// The same when the model says nothing. Stops a request from working for as long as its files make it.
pub const DEFAULT_REQUEST_MS: u64 = 60_000;

/// Milliseconds that one operator may be expected to take for a request that is worked on beside others, when the model
/// says nothing. What is expected to take longer runs in the background. Stops one request from holding up the small
/// ones behind it.
pub const DEFAULT_SLOW_REQUEST_MS: u64 = 50;

/// Requests that wait for an instance's thread in the background. Stops a flood of expensive ones from filling memory:
/// further ones are refused, as waiting for a place would hold up the small ones.
pub const MAX_SLOW_REQUESTS: usize = 256;

/// Milliseconds without work after which that thread gives its memory back.
pub const SLOW_IDLE_MS: u64 = 500;

/// Milliseconds after which a batch overstays, where batches of its model usually take a quarter of that or less: it is
/// no longer waited for before the next one begins. Stops a request of which nobody could tell how long it takes from
/// holding up its model.
pub const OVERSTAY_MS: u64 = 100;

/// Batches of an instance that may overstay, beside those that it works on at a time: each has a thread and memory of
/// its own.
pub const MAX_SPARE_LANES: usize = 6;

/// MiB of host memory that a batch may take at a time when the model says nothing: as much as one value of it may.
pub const DEFAULT_MEMORY_MB: usize = MAX_BATCH_BYTES >> 20;

/// The largest such limit that a model can be given, in MiB: more than any host has.
pub const MAX_MEMORY_MB: usize = 1 << 24;

/// Batches of a stream that are read and not yet taken. Stops a caller's number that would fill memory.
pub const MAX_STREAM_BATCHES: usize = 1_024;

/// Pixels of one decoded image (about 11,500 x 11,500). Stops a header of a few bytes that asks for gigabytes.
pub const MAX_IMAGE_PIXELS: u64 = 1 << 27;

/// Pixels of all pictures of an animation (4,000 of 480 x 270, or 250 of 1080p). Stops headers of a few bytes for each
/// picture that ask for gigabytes.
pub const MAX_ANIMATION_PIXELS: u64 = 1 << 29;

/// Crossings and pixels of the masks of one image of a data set (a second or two). Stops a thousand objects that each
/// cover a huge image.
pub const MAX_MASK_STEPS: u64 = 1 << 32;

/// Pixels of a side of an image whose size comes as numbers. Stops products that no integer holds.
pub const MAX_IMAGE_SIDE: usize = 1 << 24;

/// Pixels of a side of a patch, and of what a side becomes a multiple of. Stops products that no integer holds.
pub const MAX_PATCH_SIDE: usize = 4_096;

/// Frames of a patch, and patches that are merged along a side. Stops counts that overflow.
pub const MAX_PATCH_GROUP: usize = 64;

/// Tiles that an image is cut into, beside its overview; models take up to 40. Stops a request that makes an image of
/// ten thousand tiles.
pub const MAX_IMAGE_TILES: usize = 512;

/// Pixels of a side of a tile. Stops products that no integer holds.
pub const MAX_TILE_SIDE: usize = 8_192;

/// Mel bands of features; models take up to 160. Stops a number that fills memory.
pub const MAX_MEL_BANDS: usize = 4_096;

/// Samples of a transform of features, of which many are made for a signal: models take up to 2,048.
pub const MAX_FEATURE_TRANSFORM: usize = 1 << 16;

/// Times that one side of an image may be the other one. Stops a number that is none.
pub const MAX_ASPECT_RATIO: f64 = 65_536.0;

/// Bytes of one sample of any tensor. Stops resize and pad sizes that come from a request.
pub const MAX_SAMPLE_BYTES: usize = 1 << 31;

/// Bytes of one output of an operator over a whole batch (64 uncompressed images of 20 megapixels). Stops small files
/// with huge headers that together ask for more memory than there is; the smallest samples of the batch go on. On a
/// device it may be [`DEVICE_VALUE_PART`] instead.
pub const MAX_BATCH_BYTES: usize = 4 << 30;

/// The part of the memory that a model may have on a device which one output of an operator over a whole batch may take
/// there, where that is more: 1,024 pictures of 12 megapixels on a device of 80 GB.
pub const DEVICE_VALUE_PART: usize = 2;

/// Eighths of that memory for large values of batches that are under way at the same time. One that does not fit waits,
/// but not the batch that began with its first. What their decoders take is about as much again, and the rest is for
/// uploads and gaps.
pub const DEVICE_ROOM_EIGHTHS: usize = 3;

/// Bytes of a value that are counted there.
pub const MIN_DEVICE_ROOM_BYTES: usize = 256 << 20;

/// Bytes of memory that an instance keeps on a device from which on it is no part of a pool. Stops it from breaking up
/// what large batches have freed.
pub const MIN_LASTING_BYTES: usize = 64 << 20;

/// Milliseconds that a batch waits for such room while nobody gives any back. Stops two that wait for each other, one
/// for memory on the host, from doing so for ever.
pub const DEVICE_ROOM_WAIT_MS: u64 = 10_000;

/// Bytes that an instance keeps for the next batch after a larger one has passed. Stops one huge request from
/// holding its memory until the model is unloaded.
pub const MAX_RETAINED_BYTES: usize = 512 << 20;

/// Of the memory that a batch may take, the part (one in so many) that it may take beside an earlier batch of its
/// instance; for more it waits until that is done. So an instance whose batches overlap takes an eighth more for each
/// than one whose batches do not.
pub const MEMORY_BESIDE: usize = 8;

/// Filter weights of one axis of a resize (64 MiB). Stops a region of interest that a request stretches far beyond the
/// image; shrinking a whole image takes about six weights for each of its rows and columns.
pub const MAX_FILTER_TAPS: usize = 1 << 24;

/// Bytes that a library may allocate while it decodes an image, beyond the image's pixels. Stops compressed metadata
/// and tables that grow without bound.
pub const MAX_DECODER_SCRATCH_BYTES: usize = 256 << 20;

/// Samples of all channels of a JPEG 2000. Its decoder takes several floats for each: stops a header of some bytes from
/// taking gigabytes.
pub const MAX_JPEG_2000_SAMPLES: usize = 1 << 26;

/// Precincts, code blocks, layers of code blocks and what they are found by, of all tiles of a JPEG 2000: sixteen
/// samples for each in the largest. Stops headers of some bytes that cut an image into parts of one sample, whose lists
/// take a hundred times its memory.
pub const MAX_JPEG_2000_PARTS: u64 = 1 << 22;

/// Samples of all channels of a JPEG XL, and of any of its frames; gray counts as three. Stops a header of some bytes
/// from taking gigabytes.
pub const MAX_JPEG_XL_SAMPLES: usize = 1 << 28;

/// Pictures beside an AVIF's or HEIC's own that are looked at for one that is its alpha; two or three are usual. Stops
/// tables of thousands from being read again for each.
pub const MAX_AUXILIARY_IMAGES: usize = 16;

/// Pictures that one of AVIF or HEIC is put together of; a phone's photo of 48 megapixels has 192. Stops tables of
/// thousands from being read again for each.
pub const MAX_GRID_PICTURES: usize = 4_096;

/// Bytes of resampling scratch memory that a worker thread keeps. Stops one huge image from holding its memory for as
/// long as the model is loaded.
pub const MAX_RETAINED_SCRATCH_BYTES: usize = 32 << 20;

/// Bytes of pixels that are kept after a JPEG for the next one (a 4000 x 2500 one). Stops one large image from holding
/// its memory for as long as the process lives.
pub const MAX_RETAINED_PIXEL_BYTES: usize = 32 << 20;

/// Scans of one progressive JPEG (encoders write about ten). Stops files of a few kilobytes that take minutes: every
/// scan passes over the whole image.
pub const MAX_JPEG_SCANS: u32 = 128;

/// Coordinates and sizes of a window, either way from zero (2^52: exact in a double). Stops overflow where they are
/// added.
pub const MAX_COORDINATE: f64 = 4_503_599_627_370_496.0;

/// Samples of one Fourier transform, filters of a bank, factors of a cosine transform. Stops a file whose tables would
/// fill memory.
pub const MAX_TRANSFORM: usize = 1 << 22;

/// Samples of a Fourier transform on a device that lie in the memory that the threads of a block share; larger ones lie
/// elsewhere.
pub const MAX_SHARED_TRANSFORM: usize = 8_192;

/// Bytes of a device that transforms take which do not fit there, for as many at a time as this has room for, but for
/// one at least.
pub const TRANSFORM_BYTES: usize = 256 << 20;

/// Weights of a filter's window along one dimension (a Gaussian of sigma 100 has 601). Stops a size that comes from a
/// request from taking hours.
pub const MAX_FILTER_WINDOW: usize = 8_191;

/// Weights of a blur along a row or a column, whose product is summed for each pixel.
pub const MAX_BLUR_WEIGHTS: usize = 63;

/// Augmentations of an image, one after the other. Stops a request that asks for millions.
pub const MAX_AUGMENTATIONS: usize = 64;

/// Weights of a filter's rectangle (1,024 x 1,024). All of them are looked at for each pixel: stops a rectangle that
/// comes from a request from taking hours, and gigabytes for its weights.
pub const MAX_FILTER_WEIGHTS: usize = 1 << 20;

/// Pixels of a mask of dilation or erosion, or of a median's window, along one dimension. All of a window is looked at
/// for each pixel: stops a size that comes from a request from taking hours.
pub const MAX_MASK_SIDE: usize = 255;

/// Elements of an image, with its border, that a filter works on as float32 (2 GiB). Stops a border that comes from a
/// request from taking all memory.
pub const MAX_FILTERED_ELEMENTS: usize = 1 << 29;

/// Channels of an image to normalize (hyperspectral ones have hundreds). Stops a shape without pixels, which costs a
/// request nothing, from making tables of gigabytes.
pub const MAX_CHANNELS: usize = 1 << 16;

/// Bytes of an arithmetic expression; DALI's Python writes less than 60. Stops an expression whose evaluation would
/// hold a buffer for each of thousands of operands.
pub const MAX_EXPRESSION_BYTES: usize = 1_024;

/// Nested calls of an arithmetic expression; DALI's Python writes one. Stops recursion that overflows the stack.
pub const MAX_EXPRESSION_DEPTH: usize = 32;

/// The largest ceiling for the memory of a device that a model can be given, in units of 2^20 bytes: more than any
/// device has.
pub const MAX_GPU_MEMORY_MB: usize = 1 << 24;

/// The most multiprocessors of a device that a model can be given: more than any device has.
pub const MAX_GPU_MULTIPROCESSORS: usize = 4_096;

/// Random windows of an image that are drawn until one fits; DALI's default is 10. Stops a file that draws for minutes.
pub const MAX_CROP_ATTEMPTS: i64 = 1_000;

/// Bytes of device memory that a model keeps on a device whether its last batches needed them or not. Stops one batch
/// of huge images from taking memory away from the models behind it for good.
pub const MAX_RETAINED_DEVICE_BYTES: u64 = 8 << 30;

/// Bytes of pinned host memory that an instance keeps for its next upload, for the same reason.
pub const MAX_RETAINED_STAGING_BYTES: usize = 256 << 20;

/// The same while its batches need so many; for uploads it may be [`STAGING_PART`] instead.
pub const MAX_LARGE_STAGING_BYTES: usize = 2 << 30;

/// The part of the memory that a model may have on a device which an instance keeps for uploads while its batches need
/// it, where that is more.
pub const STAGING_PART: usize = 16;

/// Sides of an image that the JPEG engines decode. Smaller ones cost a CPU less than the way to the engines; larger
/// ones are beyond what the hardware is documented for.
pub const MIN_ENGINE_SIDE: usize = 64;
/// See [`MIN_ENGINE_SIDE`].
pub const MAX_ENGINE_SIDE: usize = 16_384;

/// Pixels of an image that the JPEG engines decode (8K is 7680 x 4320). Stops one huge image from making nvJPEG hold
/// memory of the device for as long as the model is loaded.
pub const MAX_ENGINE_PIXELS: usize = 1 << 25;

/// Bytes from the end of a JPEG in which its end marker is looked for. Stops a search through all of a file without
/// one.
pub const MAX_JPEG_TRAILER_BYTES: usize = 4_096;

/// Sides of a JPEG that the device's SMs decode; libjpeg's limit. Stops sizes that overflow their arithmetic.
pub const MAX_SM_SIDE: usize = 65_500;

/// Bytes of a JPEG's scan that the device's SMs decode: they count bits in 28 bits, some beyond the end.
pub const MAX_SM_SCAN_BYTES: usize = (1 << 25) - 4_096;

/// Scans of a progressive JPEG that the device's SMs decode (encoders write about ten): a block of threads counts what
/// each has done. Files of more are for the host.
pub const MAX_SM_SCANS: usize = 32;

/// Pixels of a progressive JPEG that the device's SMs decode. A warp has a whole scan, which takes long for a large
/// picture, and a file of few bytes may have one. The host decodes larger ones.
pub const MAX_SM_PROGRESSIVE_PIXELS: usize = 1 << 24;

/// Scratch bytes on a device for the JPEGs that its cores decode at a time, of one batch, with their pixels where these
/// are read at once. A batch that needs more is decoded in groups; an image that does is decoded elsewhere.
pub const MAX_SM_SCRATCH_BYTES: usize = 16 << 30;

/// The same as a part of the memory that a model may have there: several instances are at work at a time, and two
/// groups of each.
pub const SM_SCRATCH_PART: usize = 32;

/// Bytes on a device for pictures of a batch of which outputs are cut, turned or converted (of those on the cores, for
/// the windows) or read at once. Stops small windows of many large images from taking all of its memory: what does not
/// fit is decoded on the cores in groups, or on the host.
pub const MAX_PICTURE_BYTES: usize = 4 << 30;

/// The same as a part of the memory that a model may have there, where that is more.
pub const PICTURE_PART: usize = 8;

/// Bytes of an encoded file's private copy that a decoder on a device keeps for the next batch, for each place in the
/// batch.
pub const MAX_RETAINED_HEAD_BYTES: usize = 256 << 10;

/// Bytes of encoded files that a decoder keeps room for, of those that a device's engines read from a private copy.
pub const MAX_RETAINED_ENGINE_BYTES: usize = 64 << 20;

/// Huffman tables that an instance keeps as the device's SMs read them (3.6 KB each). Stops files that all have
/// tables of their own from filling memory.
pub const MAX_RETAINED_HUFFMAN_TABLES: usize = 256;

/// Bytes of `config.pbtxt` in which a field is looked for; the server has parsed all of it before. Stops a huge file
/// from being read twice.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Fields within fields of `config.pbtxt`; the deepest of a model configuration are six deep. Stops recursion that
/// overflows the stack.
pub const MAX_CONFIG_DEPTH: usize = 64;

/// Seconds that Python may take to serialize a pipeline; importing DALI takes several on a busy machine. Stops a file
/// that never ends from holding the load of a model for good.
pub const MAX_SERIALIZE_SECONDS: u64 = 120;

/// Bytes of what Python prints that are kept for an error: the last ones, as a traceback ends with what went wrong.
/// Stops a program that prints without end.
pub const MAX_PRINTED_BYTES: usize = 4_096;

/// Bytes by which a struct of a caller of the C API may be larger than ours, as that of a newer header. Stops a size
/// that was never set.
pub const MAX_STRUCT_GROWTH: usize = 256;

/// Regions that arguments of `Erase` and `MultiPaste` may name for one sample. Each may be as large as the image: stops
/// a request of a few bytes that takes minutes.
pub const MAX_REGIONS: usize = 4_096;

/// Operators that libraries may bring. Stops a table without an end.
pub const MAX_CUSTOM_OPERATORS: usize = 1_024;

/// Comparisons of random windows with bounding boxes for one sample: a search whose conditions no window meets ends.
pub const MAX_BOX_COMPARISONS: usize = 1 << 24;

/// Objects of one label map. Stops a map of a pattern that takes a hundred times its memory.
pub const MAX_OBJECTS: usize = 1 << 20;

/// Classes that an object is drawn from. Each may be drawn and rejected, which looks at all others again.
pub const MAX_CLASSES: usize = 8_192;

/// Tables of colour profiles that a decoder keeps on a device: cameras and editors share few. A table takes 2 MB.
pub const MAX_COLOR_TABLES: usize = 16;

/// Sizes of frames for which an instance keeps a session of the device's optical flow engine; a batch has sequences of
/// no more. A session holds two frames and a field of vectors: 33 MB of 1080p where each pixel has a vector. Stops
/// clients who vary sizes from filling a device.
pub const MAX_FLOW_SESSIONS: usize = 16;

/// Of the memory that a batch may take yet, the part (one in so many) that files which its requests name may take
/// together. Stops a request of a few bytes that names large files from taking all that the others of its batch need.
pub const NAMED_FILES_PART: usize = 2;
