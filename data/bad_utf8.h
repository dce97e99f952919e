// What becomes of the bytes of a text that are not UTF-8.
#pragma once

namespace cinta::data {

enum class BadUtf8 {
  error,    ///< a FileError that names the first of them
  replace,  ///< each becomes U+FFFD, which BERT's tokenizer passes over
};

}  // namespace cinta::data
