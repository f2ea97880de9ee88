//! What C cannot be trusted to try: that what crosses threads may, and that structs are what the header says.

use super::instance::InstanceHandle;
use super::pipeline::PipelineHandle;
use super::result::ResultHandle;
use super::types;
use crate::tensor::DType;

#[test]
fn handles_may_change_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<PipelineHandle>();
    shared::<InstanceHandle>();
    shared::<ResultHandle>();
}

#[test]
fn element_types_have_the_numbers_of_the_header() {
    for (number, expected) in DType::ALL.into_iter().enumerate() {
        let number = i32::try_from(number).unwrap();
        assert_eq!(types::dtype(number).unwrap(), expected);
        assert_eq!(types::number(Some(expected)), number);
    }
    assert_eq!(types::number(None), -1);
    assert!(types::dtype(-1).is_err() && types::dtype(12).is_err());
    assert_eq!(types::dtype(types::ElementType::Float32 as i32).unwrap(), DType::F32);
    assert_eq!(types::dtype(types::ElementType::Bool as i32).unwrap(), DType::Bool);
}

#[test]
fn a_panic_is_a_status_without_its_text() {
    use super::status::{Status, gesso_last_error, guard};
    assert_eq!(guard(|| panic!("it broke")), Status::Internal);
    // SAFETY: the text lives until the next failure of this thread.
    let text = unsafe { std::ffi::CStr::from_ptr(gesso_last_error()) };
    assert_eq!(text.to_str().unwrap(), "failed by a fault of the program, of which its log says more");
}
