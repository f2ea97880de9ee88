//! decoders on a device
