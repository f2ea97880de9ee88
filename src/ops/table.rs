//! The table of all operators, and that of their kernels. It must not know what any of them does.

use super::*;
use crate::gpu::KernelSpec;
use crate::operator::{Args, Fusion, OpDef};
use crate::tensor::{Device, ValueType};

/// All operators, sorted by name.
pub const OPS: &[&OpDef] = &[
    &math::arithmetic::DEF,
    &audio::audio_resample::DEF,
    &boxes::bbox_paste::DEF,
    &boxes::bbox_rotate::DEF,
    &random::batch_permutation::DEF,
    &boxes::bb_flip::DEF,
    #[cfg(feature = "fault-injection")]
    &boom::DEF,
    &boxes::box_encoder::DEF,
    &color::linear::brightness_contrast::BRIGHTNESS_DEF,
    &color::linear::brightness_contrast::DEF,
    &math::cast::DEF,
    &math::cast_like::DEF,
    &structure::join::CAT,
    &color::clahe::DEF,
    &color::color_space_conversion::DEF,
    &color::linear::color_twist::DEF,
    &structure::constant::DEF,
    &color::linear::brightness_contrast::CONTRAST_DEF,
    &boxes::coord_flip::DEF,
    &boxes::coord_transform::DEF,
    &structure::copy::DEF,
    &geometry::crop::DEF,
    &geometry::crop_mirror_normalize::DEF,
    &color::debayer::DEF,
    &structure::dump_image::DEF,
    &sequence::element_extract::DEF,
    &color::equalize::DEF,
    &geometry::erase::DEF,
    &structure::expand_dims::DEF,
    &structure::external_source::DEF,
    &geometry::resize_crop_mirror::FAST,
    &filters::filter::DEF,
    &geometry::flip::DEF,
    &structure::fill::FULL,
    &structure::fill::FULL_LIKE,
    &filters::gaussian_blur::DEF,
    &structure::get_property::DEF,
    &geometry::grid_mask::DEF,
    &color::linear::color_twist::HSV_DEF,
    &color::linear::color_twist::HUE_DEF,
    &geometry::displacement::JITTER,
    &color::jpeg_compression_distortion::DEF,
    &filters::laplacian::DEF,
    &math::lookup_table::DEF,
    &audio::mfcc::DEF,
    &audio::mel_filter_bank::DEF,
    &geometry::multi_paste::DEF,
    &audio::nonsilent_region::DEF,
    &math::normalize::DEF,
    &structure::one_hot::DEF,
    &structure::fill::ONES,
    &structure::fill::ONES_LIKE,
    &sequence::optical_flow::DEF,
    &geometry::pad::DEF,
    &geometry::paste::DEF,
    &decode::peek_image_shape::DEF,
    &sequence::per_frame::DEF,
    &structure::permute_batch::DEF,
    &audio::power_spectrum::DEF,
    &audio::preemphasis_filter::DEF,
    &random::roi_crop::DEF,
    &random::bbox_crop::DEF,
    &random::crop::GENERATOR,
    &random::crop::RESIZED,
    &structure::reinterpret::DEF,
    &structure::reshape::DEF,
    &geometry::resize::DEF,
    &geometry::resize_crop_mirror::DEF,
    &geometry::warp::rotate::DEF,
    &random::ssd_crop::DEF,
    &color::linear::color_twist::SATURATION_DEF,
    &sequence::sequence_rearrange::DEF,
    &structure::shapes::DEF,
    &geometry::slice::DEF,
    &audio::spectrogram::DEF,
    &geometry::displacement::SPHERE,
    &structure::squeeze::DEF,
    &structure::join::STACK,
    &structure::subscript_dim_check::DEF,
    &geometry::tensor_resize::DEF,
    &structure::subscript::DEF,
    &audio::to_decibels::DEF,
    &structure::transpose::DEF,
    &geometry::warp::affine::DEF,
    &geometry::displacement::WATER,
    &structure::fill::ZEROS,
    &structure::fill::ZEROS_LIKE,
    &structure::conditional::MERGE,
    &structure::conditional::NOT,
    &structure::conditional::SPLIT,
    &structure::conditional::VALIDATE_LOGICAL,
    &audio::decoders_audio::DEF,
    &decode::decoders_image::DEF,
    &decode::decoders_image_crop::DEF,
    &random::crop::DECODER,
    &decode::decoders_image_slice::DEF,
    &decode::decoders_inflate::DEF,
    &decode::decoders_numpy::DEF,
    &decode::decoders_video::DEF,
    &filters::morphology::DILATE,
    &filters::morphology::ERODE,
    &filters::median_blur::DEF,
    &geometry::remap::DEF,
    &geometry::warp::perspective::DEF,
    &sequence::inputs_video::DEF,
    &multimodal::log_mel::DEF,
    &multimodal::patch_grid::DEF,
    &multimodal::patchify::DEF,
    &multimodal::smart_resize::DEF,
    &multimodal::tile::DEF,
    &multimodal::tile_grid::DEF,
    &multimodal::unit_variance::DEF,
    &random::noise::DEF,
    &random::salt_and_pepper::DEF,
    &random::shot::DEF,
    &random::beta::DEF,
    &random::choice::DEF,
    &random::coin_flip::DEF,
    &random::normal::DEF,
    &random::uniform::DEF,
    &math::reductions::MAX,
    &math::reductions::MEAN,
    &math::reductions::MEAN_SQUARE,
    &math::reductions::MIN,
    &math::reductions::RMS,
    &math::reductions::STD_DEV,
    &math::reductions::SUM,
    &math::reductions::VARIANCE,
    &boxes::segmentation::random_mask_pixel::DEF,
    &boxes::segmentation::random_object_bbox::DEF,
    &boxes::segmentation::select_masks::DEF,
    &geometry::transforms::combine::DEF,
    &geometry::transforms::crop::DEF,
    &geometry::transforms::rotation::DEF,
    &geometry::transforms::scale::DEF,
    &geometry::transforms::shear::DEF,
    &geometry::transforms::translation::DEF,
];

/// Chains that become one operator.
fn fusions() -> impl Iterator<Item = &'static Fusion> {
    let decoders = decode::decode_resize::host::FUSIONS.iter().chain(&decode::decode_resize::device::FUSIONS);
    [&geometry::resize_normalize::FUSION].into_iter().chain(decoders)
}

/// The fusion of operators on `device` with their arguments, each the only reader of the one before, for inputs of
/// these types.
pub fn fusion(device: Device, chain: &[(&OpDef, &Args)], types: &[&ValueType]) -> Option<&'static Fusion> {
    fusions().find(|fusion| fusion.fits(device, chain, types))
}

/// The kernels of all operators and fusions, see [`OpDef::kernels`]; and those that copy for operators that have none.
pub fn kernels() -> Vec<KernelSpec> {
    let mut all: Vec<KernelSpec> = Vec::new();
    let of_operators = OPS.iter().flat_map(|op| op.kernels).flat_map(|kernels| kernels());
    for spec in of_operators.chain(fusions().flat_map(|fusion| (fusion.kernels)())) {
        if !all.contains(&spec) {
            all.push(spec);
        }
    }
    all
}

/// The operator with the schema name `name`, in any of its spellings.
pub fn find(name: &str) -> Option<&'static OpDef> {
    let plain = name.strip_prefix('_').filter(|rest| !rest.starts_with("conditional__")).unwrap_or(name);
    let known =
        OPS.iter().copied().find(|op| op.name == plain || op.name == name || op.aliases.contains(&name));
    known.or_else(|| custom::find(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::operator::args::Value;

    #[test]
    fn the_table_is_sorted_and_unique() {
        assert!(OPS.is_sorted_by(|a, b| a.name < b.name));
        let mut names = HashSet::new();
        for op in OPS {
            assert!(!op.name.starts_with('_'), "{} keeps its underscore", op.name);
            for name in op.aliases.iter().chain([&op.name]) {
                assert!(names.insert(*name), "{name} stands twice");
                assert_eq!(find(name).unwrap().name, op.name);
            }
        }
    }

    #[test]
    fn every_argument_is_documented_once() {
        for op in OPS {
            assert!(!op.doc.is_empty() && !op.devices.is_empty(), "{}", op.name);
            let mut names = HashSet::new();
            for arg in op.all_args() {
                let of = format!("{}: argument {}", op.name, arg.name);
                assert!(names.insert(arg.name), "{of} stands twice");
                assert!(arg.default_fits(), "{of} is a {:?} and has the default {:?}", arg.kind, arg.default);
                assert!(arg.tensor || !arg.per_frame, "{of} differs by frame, but not by sample");
                assert!(arg.doc.len() > 8, "{of} is not documented");
            }
        }
    }

    #[test]
    fn an_unknown_argument_is_an_error_that_names_it() {
        let args = Args::new([("angle".to_owned(), Value::Ints(vec![1]))].into(), [].into());
        let error = find("Flip").unwrap().instantiate(&args, 1).err().unwrap().to_string();
        assert!(error.contains("`angle`") && error.contains("`Flip`"), "{error}");
    }
}
