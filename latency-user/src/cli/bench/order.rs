//! The order in which commands take turns: random, so that no drift of the machine falls on one of them,
//! and repeatable.

/// Orders, one after the other.
#[derive(Debug)]
pub(super) struct Order {
    state: u64,
}

impl Order {
    /// The same seed gives the same orders.
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The numbers below `n`, each once.
    pub(super) fn of(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..n).collect();
        for last in (1..n).rev() {
            let n_left = last as u64 + 1;
            // SANITY: the remainder is below a `usize`.
            let other = usize::try_from(self.next() % n_left).unwrap_or(last);
            order.swap(last, other);
        }
        order
    }

    /// `SplitMix64`, by Steele, Lea and Flood.
    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_and_each_has_all() {
        let mut order = Order::new(7);
        let mut seen = std::collections::BTreeMap::<Vec<usize>, u32>::new();
        for _ in 0..6000 {
            *seen.entry(order.of(3)).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        for (order, n) in seen {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            assert!((850..1150).contains(&n), "{order:?} came {n} times");
        }
    }

    #[test]
    fn seed_decides() {
        let orders = |seed| {
            let mut order = Order::new(seed);
            [order.of(9), order.of(9)]
        };
        assert_eq!(orders(5), orders(5));
        assert_ne!(orders(5), orders(6));
        assert!(Order::new(1).of(0).is_empty());
    }
}
