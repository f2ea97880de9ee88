//! Coefficients to bits: symbols, Huffman tables of all kinds, stuffing. It must not know components or files.

use super::planes::{Block, Dice};

/// Places in a block in the order in which coefficients are coded.
pub(crate) fn zigzag() -> [usize; 64] {
    let mut order: Vec<usize> = (0..64).collect();
    // Diagonals; every other one upwards.
    order.sort_by_key(|&i| {
        let (x, y) = (i % 8, i / 8);
        (x + y, if (x + y) % 2 == 0 { x } else { y })
    });
    std::array::from_fn(|i| order[i])
}

/// A symbol with the bits behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    /// Of the first coefficient, or of another.
    pub(crate) first: bool,
    pub(crate) symbol: u8,
    value: u32,
}

impl Token {
    fn new(first: bool, run: u8, value: i32) -> Self {
        let bits = 32 - value.unsigned_abs().leading_zeros();
        let value = if value < 0 { value - 1 } else { value } as u32 & ((1 << bits) - 1);
        Self { first, symbol: run << 4 | bits as u8, value }
    }
}

/// The tokens of a block whose first coefficient is predicted as `before`.
pub(crate) fn tokens(block: &Block, before: i32) -> Vec<Token> {
    let mut tokens = vec![Token::new(true, 0, block[0] - before)];
    let mut run = 0;
    for &at in &zigzag()[1..] {
        match block[at] {
            0 => run += 1,
            value => {
                while run > 15 {
                    tokens.push(Token { first: false, symbol: 0xF0, value: 0 });
                    run -= 16;
                }
                tokens.push(Token::new(false, run, value));
                run = 0;
            }
        }
    }
    if run > 0 {
        tokens.push(Token { first: false, symbol: 0, value: 0 });
    }
    tokens
}

/// Codes of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) counts: [u8; 16],
    pub(crate) symbols: Vec<u8>,
}

impl Table {
    /// The best codes for symbols with such weights; symbols of weight 0 have none.
    pub(crate) fn of(weights: &[u64; 256]) -> Self {
        let mut weights: Vec<(usize, u64)> =
            weights.iter().copied().enumerate().filter(|&(_, weight)| weight > 0).collect();
        let lengths = loop {
            let lengths = lengths(&weights);
            if lengths.iter().all(|&(_, length)| length <= 16) {
                break lengths;
            }
            weights.iter_mut().for_each(|(_, weight)| *weight = (*weight).div_ceil(2));
        };
        let mut table = Self::default();
        for (symbol, length) in lengths {
            table.counts[length - 1] += 1;
            table.symbols.push(symbol as u8);
        }
        table
    }

    /// Codes that have nothing to do with how often a symbol of `used` is there, up to the longest; and of symbols that
    /// are not.
    pub(crate) fn odd(used: &[u64; 256], first: bool, dice: &mut Dice) -> Self {
        let largest = |symbol: usize| if first { symbol <= 11 } else { symbol & 15 <= 10 };
        let weights = std::array::from_fn(|symbol| {
            let wanted = used[symbol] > 0 || (largest(symbol) && dice.below(4) == 0);
            if wanted { 1 << dice.below(24) } else { 0 }
        });
        Self::of(&weights)
    }

    /// Length and code of every symbol.
    fn codes(&self) -> [(u32, u64); 256] {
        let mut codes = [(0, 0); 256];
        let (mut code, mut symbols) = (0, self.symbols.iter());
        for (length, &count) in (1..).zip(&self.counts) {
            code <<= 1;
            for &symbol in symbols.by_ref().take(usize::from(count)) {
                codes[usize::from(symbol)] = (length, code);
                code += 1;
            }
        }
        codes
    }
}

/// Symbols with the lengths of their codes, the shortest first. The last code, of ones alone, stays free.
fn lengths(weights: &[(usize, u64)]) -> Vec<(usize, usize)> {
    const FREE: usize = usize::MAX;
    // Trees with their weights and leaves; the one that stays free weighs nothing, so no leaf is deeper.
    let mut trees: Vec<(u64, Vec<(usize, usize)>)> =
        weights.iter().map(|&(symbol, weight)| (weight, vec![(symbol, 0)])).collect();
    trees.push((0, vec![(FREE, 0)]));
    while trees.len() > 1 {
        trees.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let (Some((a, mut leaves)), Some((b, more))) = (trees.pop(), trees.pop()) else { break };
        leaves.extend(more);
        leaves.iter_mut().for_each(|(_, depth)| *depth += 1);
        trees.push((a + b, leaves));
    }
    let mut leaves = trees.remove(0).1;
    leaves.retain(|&(symbol, _)| symbol != FREE);
    leaves.sort_by_key(|&(symbol, length)| (length, symbol));
    leaves
}

/// Writes bits as a scan has them.
#[derive(Default)]
pub(crate) struct Bits {
    pub(crate) bytes: Vec<u8>,
    deadline: u64,
    count: u32,
}

impl Bits {
    fn write(&mut self, bits: u64, count: u32) {
        self.deadline = self.deadline << count | bits;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.deadline >> self.count) as u8;
            self.bytes.push(byte);
            self.bytes.extend((byte == 0xFF).then_some(0));
        }
        self.deadline &= (1 << self.count) - 1;
    }

    /// Fills the last byte with ones and writes a marker after `fill` further ones.
    pub(crate) fn marker(&mut self, marker: u8, fill: usize) {
        let missing = (8 - self.count % 8) % 8;
        self.write((1 << missing) - 1, missing);
        self.bytes.resize(self.bytes.len() + 1 + fill, 0xFF);
        self.bytes.push(marker);
    }

    /// Writes tokens with a table for first coefficients and one for the others.
    pub(crate) fn tokens(&mut self, tokens: &[Token], [first, others]: &[Codes; 2]) {
        for token in tokens {
            let codes = if token.first { first } else { others };
            let (length, code) = codes.0[usize::from(token.symbol)];
            assert!(length > 0, "symbol {:02x} has no code", token.symbol);
            self.write(code, length);
            self.write(u64::from(token.value), u32::from(token.symbol & 15));
        }
    }
}

/// Codes by symbol.
pub(crate) struct Codes([(u32, u64); 256]);

impl From<&Table> for Codes {
    fn from(table: &Table) -> Self {
        Self(table.codes())
    }
}
