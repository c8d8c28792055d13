//! The kernels that this library has compiled at run time, for who compiles them beforehand.

use crate::gpu::{WORDS, reduction};
use crate::types::ELEMENTS;

/// Name and text of each unit. They need crosswarp-cuda's device headers and no options.
pub fn units() -> Vec<(String, String)> {
    let words = (WORDS.name.to_owned(), WORDS.text.to_owned());
    let reductions = ELEMENTS.iter().map(|element| reduction(element));
    std::iter::once(words).chain(reductions).collect()
}
