//! Which known name a misspelt one was meant to be. It must not know what the names are for.

/// Characters of the longest name that is compared; comparing takes their square.
const MAX_CHARS: usize = 100;

/// The known name that is spelt like `word`: but for small letters and hyphens, of every four characters at most one
/// differs.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    if word.len() > MAX_CHARS {
        return None;
    }
    let distances = known.map(|name| (distance(&word, &plain(name)), name));
    let near = distances.filter(|(distance, name)| distance * 4 <= name.chars().count());
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// `; did you mean NAME?`, or nothing where no known name is near.
pub(crate) fn hint<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

fn plain(name: &str) -> Vec<char> {
    name.to_lowercase().replace('-', "_").chars().collect()
}

/// How many characters must be inserted, removed or exchanged to make `b` of `a` (Levenshtein's distance).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        let mut left = i + 1;
        for (pair, y) in above.windows(2).zip(b) {
            let [diagonal, up] = *pair else { continue };
            left = (diagonal + usize::from(x != y)).min(up + 1).min(left + 1);
            row.push(left);
        }
        above = row;
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_near_the_name_that_it_was_meant_to_be() {
        let known = ["num_threads", "max_batches_in_flight", "jpeg_path", "jpeg_decoder"];
        let near = |word: &str| nearest(word, known.into_iter());
        for (word, name) in [
            ("num_thread", "num_threads"),
            ("NumThreads", "num_threads"),
            ("Num-Threads", "num_threads"),
            ("max_batch_in_flight", "max_batches_in_flight"),
            ("jpeg_decode", "jpeg_decoder"),
            ("jpg_path", "jpeg_path"),
        ] {
            assert_eq!(near(word), Some(name), "{word}");
        }
        for word in ["", "quality", "labels", "threads_num_of", &"n".repeat(1_000_000)] {
            assert_eq!(near(word), None);
        }
        assert_eq!(distance(&['a', 'b', 'c'], &['b', 'c', 'd']), 2);
        assert_eq!((distance(&[], &['a']), distance(&['a'], &[])), (1, 1));
        assert_eq!(hint("num_thread", known.into_iter()), "; did you mean `num_threads`?");
    }
}
