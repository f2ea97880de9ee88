//! What outputs are declared as, for operators that learn the type of what they make from each sample. It must not know
//! who declares it.

use super::Executor;
use crate::graph::infer::Operators;
use crate::graph::{GraphOutput, NodeKind, Plan};
use crate::tensor::{DType, ValueType};

impl Executor {
    /// Tells the operators what is expected of the outputs, in their order, beyond what the pipeline says. A sample of
    /// another type then fails alone, and does not decide what the batch is.
    pub fn expect(&mut self, outputs: &[ValueType]) {
        expect(&self.plan, &mut self.operators, outputs);
    }
}

/// What the pipeline's author declared.
pub(super) fn declared(output: &GraphOutput) -> ValueType {
    ValueType { dtype: output.dtype, dims: output.ndim.map(|ndim| vec![None; ndim]), layout: None }
}

/// Tells `operators` of what is expected of the values that they make.
pub(super) fn expect(plan: &Plan, operators: &mut Operators, outputs: &[ValueType]) {
    let graph = &plan.graph;
    let mut expected = vec![ValueType::default(); graph.values.len()];
    for (output, more) in graph.outputs.iter().zip(outputs) {
        let (own, value) = (declared(output), &mut expected[output.value.0]);
        value.dtype = value.dtype.or(own.dtype).or(more.dtype);
        value.dims = value.dims.take().or(own.dims).or_else(|| more.dims.clone());
    }
    for (node, operator) in graph.nodes.iter().zip(operators).rev() {
        let made: Vec<ValueType> = node.outputs.iter().map(|id| expected[id.0].clone()).collect();
        let (Some(first), Some(&input)) = (made.first(), node.inputs.first()) else { continue };
        match operator {
            None if matches!(node.kind, NodeKind::Transfer) => expected[input.0] = first.clone(),
            None => {}
            Some(operator) => {
                operator.expect(&made);
                let dtype = first.dtype.filter(|_| graph.value(input).ty.dtype.is_none());
                // Where only one type of the input makes that of the output.
                let makes = |dtype: DType, wanted: DType| {
                    let types = node.inputs.iter().map(|&id| graph.value(id).ty.clone());
                    let mut types: Vec<ValueType> = types.collect();
                    types[0].dtype = Some(dtype);
                    let made = operator.infer(&types).ok().and_then(|made| made.first()?.dtype);
                    made == Some(wanted)
                };
                let mut fitting = dtype
                    .into_iter()
                    .flat_map(|wanted| DType::ALL.into_iter().filter(move |&d| makes(d, wanted)));
                if let (Some(only), None) = (fitting.next(), fitting.next()) {
                    expected[input.0].dtype = expected[input.0].dtype.or(Some(only));
                }
            }
        }
    }
}
