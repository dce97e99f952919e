// Handwritten digits in 8x8 pixels: read from a file, or drawn by ourselves where there is none.
#pragma once
#include <cstdint>
#include <string>

#include "cinta/data/examples.h"

namespace cinta::data {

/// Digits from CSV (plain or gzip), a row each: 64 pixels 0..16 row by row, then the class 0..9, the layout of the UCI
/// "Optical Recognition of Handwritten Digits" set (Alpaydin and Kaynak, 1998).
/// Throws FileError for another layout or a pixel outside 0..16.
Examples read_digits(const std::string& path, Where where = Where::current());

/// Digits drawn here, in the same layout and value range: strokes of a glyph under a random affine map, with random
/// thickness and noise. Digit i has class i % 10; the picture is a pure function of (seed, i). Throws
/// ValueError for a number of digits that cannot be.
Examples generate_digits(int64_t count, uint64_t seed, Where where = Where::current());

}  // namespace cinta::data
