//! Tables of weights of axes. Images of a data set often have the same sizes, so the tables that were used last are
//! kept. It must not know how weights are worked out, nor kernels.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cpu::exact::{AxisTask, Table};
use crate::error::{Error, Result};
use crate::operator::GpuCx;

/// Bytes of tables in use from which on those are dropped that were not used since there were so few.
const KEPT_BYTES: usize = 8 << 20;

/// Tables to make that are worth waking other threads for.
const WORTH_THREADS: usize = 4;

/// The tables that were used last, of two generations: what is used comes into the younger one. When that is full, it
/// is the older one.
#[derive(Default)]
pub(in crate::ops) struct Tables {
    young: HashMap<AxisTask, Arc<Table>>,
    old: HashMap<AxisTask, Arc<Table>>,
    /// Of the younger ones.
    bytes: usize,
}

/// A table on the device.
#[derive(Clone)]
pub(super) struct Placed {
    pub(super) table: Arc<Table>,
    pub(super) address: u64,
}

impl Tables {
    /// Puts the tables of `axes` on the way to the device.
    ///
    /// # Errors
    /// When they have more bytes than a value may have, or there is no memory.
    pub(super) fn stage(
        &mut self,
        cx: &mut GpuCx<'_>,
        axes: impl Iterator<Item = AxisTask>,
    ) -> Result<HashMap<AxisTask, Placed>> {
        // Where they are, from the beginning of all.
        let mut placed: HashMap<AxisTask, Option<Arc<Table>>> = HashMap::new();
        for axis in axes {
            placed.entry(axis).or_insert_with(|| self.find(&axis));
        }
        let mut missing: Vec<_> = placed.iter_mut().filter(|(_, table)| table.is_none()).collect();
        let make = |(axis, table): &mut (&AxisTask, &mut Option<Arc<Table>>)| {
            **table = Some(Arc::new(axis.table()));
        };
        if missing.len() < WORTH_THREADS {
            missing.iter_mut().for_each(make);
        } else {
            cx.cpu.pool.for_each(&mut missing, make);
        }
        let (mut all, mut words) = (HashMap::with_capacity(placed.len()), Vec::new());
        for (axis, table) in placed {
            let table = table.ok_or_else(|| Error::internal("a table was not made"))?;
            all.insert(
                axis,
                Placed { table: Arc::clone(&table), address: size_of_val(words.as_slice()) as u64 },
            );
            words.extend_from_slice(&table.words);
            self.keep(axis, table);
        }
        let (bytes, most) = (size_of_val(words.as_slice()), cx.recorder.gpu().most_of_a_value());
        if bytes > most {
            return Err(Error::invalid(format!(
                "{bytes} bytes of weights of a batch, expected at most {most}"
            )));
        }
        let memory = cx.recorder.stage(bytemuck::cast_slice(&words))?.address();
        all.values_mut().for_each(|placed| placed.address += memory);
        Ok(all)
    }

    fn find(&self, axis: &AxisTask) -> Option<Arc<Table>> {
        self.young.get(axis).or_else(|| self.old.get(axis)).map(Arc::clone)
    }

    fn keep(&mut self, axis: AxisTask, table: Arc<Table>) {
        let bytes = size_of_val(table.words.as_slice());
        if bytes > KEPT_BYTES || self.young.contains_key(&axis) {
            return;
        }
        if self.bytes + bytes > KEPT_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(axis, table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::exact::{Arithmetic, Filter, Task};

    #[test]
    fn what_was_used_last_is_kept() {
        let axis = |length: usize| {
            let task = Task::whole(Arithmetic::Pillow, Filter::Linear, [1, length], 1, [1, 1000]);
            task.steps().unwrap().axes[1]
        };
        let mut tables = Tables::default();
        for length in 0..400 {
            tables.keep(axis(1), Arc::new(axis(1).table()));
            let table = tables.find(&axis(length + 2)).unwrap_or_else(|| Arc::new(axis(length + 2).table()));
            tables.keep(axis(length + 2), table);
            assert!(tables.bytes <= KEPT_BYTES);
            assert!(tables.find(&axis(1)).is_some() && tables.find(&axis(length + 2)).is_some());
        }
        assert!(tables.find(&axis(2)).is_some(), "of the older generation");
        (1000..1800).for_each(|length| tables.keep(axis(length), Arc::new(axis(length).table())));
        assert!(tables.find(&axis(1)).is_none() && tables.find(&axis(1799)).is_some());
    }
}
