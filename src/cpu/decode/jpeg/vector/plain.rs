//! Vectors without intrinsics: for processors that have no better ones, and as the others' definition.

use super::Vector;

/// Eight lanes of 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Plain([i16; 8]);

fn each(a: Plain, b: Plain, f: impl Fn(i16, i16) -> i16) -> Plain {
    Plain(std::array::from_fn(|i| f(a.0[i], b.0[i])))
}

fn words(v: Plain) -> [i32; 4] {
    bytemuck::cast(v.0)
}

fn each32(a: Plain, b: Plain, f: impl Fn(i32, i32) -> i32) -> Plain {
    let (a, b) = (words(a), words(b));
    Plain(bytemuck::cast::<[i32; 4], _>(std::array::from_fn(|i| f(a[i], b[i]))))
}

/// Elements of both in turn, from the lower or upper halves.
fn interleave<T: bytemuck::Pod, const N: usize>(a: Plain, b: Plain, upper: bool) -> Plain
where
    [T; N]: bytemuck::Pod,
{
    let (a, b): ([T; N], [T; N]) = (bytemuck::cast(a.0), bytemuck::cast(b.0));
    let from = if upper { N / 2 } else { 0 };
    let mixed: [T; N] = std::array::from_fn(|i| if i % 2 == 0 { a[from + i / 2] } else { b[from + i / 2] });
    Plain(bytemuck::cast(mixed))
}

impl Vector for Plain {
    const PARTS: usize = 1;

    #[inline(always)]
    fn splat16(value: i16) -> Self {
        Self([value; 8])
    }
    #[inline(always)]
    fn splat32(value: i32) -> Self {
        Self(bytemuck::cast([value; 4]))
    }
    #[inline(always)]
    fn load(from: &[i16]) -> Self {
        let from = &from[..8];
        Self(std::array::from_fn(|i| from[i]))
    }
    #[inline(always)]
    fn load_each(from: &[i16; 8]) -> Self {
        Self(*from)
    }
    #[inline(always)]
    fn load_bytes(from: &[u8]) -> Self {
        let from = &from[..16];
        Self(std::array::from_fn(|i| i16::from_le_bytes([from[2 * i], from[2 * i + 1]])))
    }
    #[inline(always)]
    fn widen(from: &[u8]) -> Self {
        let from = &from[..8];
        Self(std::array::from_fn(|i| i16::from(from[i])))
    }
    #[inline(always)]
    fn store(self, to: &mut [i16]) {
        to[..8].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn store_halves(self, a: &mut [u8], b: &mut [u8]) {
        let bytes: [u8; 16] = bytemuck::cast(self.0);
        a[..8].copy_from_slice(&bytes[..8]);
        b[..8].copy_from_slice(&bytes[8..]);
    }
    #[inline(always)]
    fn store_pixels(channels: [Self; 3], to: &mut [u8]) {
        let bytes: [[u8; 16]; 3] = channels.map(|channel| bytemuck::cast(channel.0));
        let (pixels, _) = to[..48].as_chunks_mut::<3>();
        for (x, pixel) in pixels.iter_mut().enumerate() {
            *pixel = bytes.map(|channel| channel[x % 2 * 8 + x / 2]);
        }
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.0 == [0; 8]
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        each(self, other, |a, b| a & b)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        each(self, other, |a, b| a | b)
    }
    #[inline(always)]
    fn add16(self, other: Self) -> Self {
        each(self, other, i16::wrapping_add)
    }
    #[inline(always)]
    fn sub16(self, other: Self) -> Self {
        each(self, other, i16::wrapping_sub)
    }
    #[inline(always)]
    fn mul16(self, other: Self) -> Self {
        each(self, other, i16::wrapping_mul)
    }
    #[inline(always)]
    fn mulround16(self, other: Self) -> Self {
        each(self, other, |a, b| ((i32::from(a) * i32::from(b) + (1 << 14)) >> 15) as i16)
    }
    #[inline(always)]
    fn madd(self, other: Self) -> Self {
        let product = |i: usize| i32::from(self.0[i]) * i32::from(other.0[i]);
        let sums: [i32; 4] = std::array::from_fn(|i| product(2 * i).wrapping_add(product(2 * i + 1)));
        Self(bytemuck::cast(sums))
    }
    #[inline(always)]
    fn add32(self, other: Self) -> Self {
        each32(self, other, i32::wrapping_add)
    }
    #[inline(always)]
    fn sub32(self, other: Self) -> Self {
        each32(self, other, i32::wrapping_sub)
    }
    #[inline(always)]
    fn sra16<const N: u32>(self) -> Self {
        each(self, self, |a, _| a >> N)
    }
    #[inline(always)]
    fn srl16<const N: u32>(self) -> Self {
        each(self, self, |a, _| (a as u16 >> N) as i16)
    }
    #[inline(always)]
    fn sra32<const N: u32>(self) -> Self {
        each32(self, self, |a, _| a >> N)
    }
    #[inline(always)]
    fn packs32(self, other: Self) -> Self {
        let (a, b) = (words(self), words(other));
        let packed = |i: usize| if i < 4 { a[i] } else { b[i - 4] };
        Self(std::array::from_fn(|i| packed(i).clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16))
    }
    #[inline(always)]
    fn packus16(self, other: Self) -> Self {
        let packed = |i: usize| if i < 8 { self.0[i] } else { other.0[i - 8] };
        let bytes: [u8; 16] = std::array::from_fn(|i| packed(i).clamp(0, 255) as u8);
        Self(bytemuck::cast(bytes))
    }
    #[inline(always)]
    fn samples8(self, other: Self) -> Self {
        let packed = |i: usize| if i < 8 { self.0[i] } else { other.0[i - 8] };
        let bytes: [u8; 16] = std::array::from_fn(|i| (packed(i).clamp(-128, 127) + 128) as u8);
        Self(bytemuck::cast(bytes))
    }
    #[inline(always)]
    fn low16(self, other: Self) -> Self {
        interleave::<u16, 8>(self, other, false)
    }
    #[inline(always)]
    fn high16(self, other: Self) -> Self {
        interleave::<u16, 8>(self, other, true)
    }
    #[inline(always)]
    fn low32(self, other: Self) -> Self {
        interleave::<u32, 4>(self, other, false)
    }
    #[inline(always)]
    fn high32(self, other: Self) -> Self {
        interleave::<u32, 4>(self, other, true)
    }
    #[inline(always)]
    fn even32(self, other: Self) -> Self {
        let (a, b) = (words(self), words(other));
        Self(bytemuck::cast([a[0], a[2], b[0], b[2]]))
    }
    #[inline(always)]
    fn odd32(self, other: Self) -> Self {
        let (a, b) = (words(self), words(other));
        Self(bytemuck::cast([a[1], a[3], b[1], b[3]]))
    }
    #[inline(always)]
    fn turned8(self) -> Self {
        let bytes: [u8; 16] = bytemuck::cast(self.0);
        let turned: [u8; 16] = std::array::from_fn(|i| bytes[i % 4 * 4 + i / 4]);
        Self(bytemuck::cast(turned))
    }
}
