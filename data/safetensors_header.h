// The header of a .safetensors file: what may stand in it, parsed from bytes in memory. Used by the reader, the writer
// and the fuzz target; everybody else includes safetensors.h.
#pragma once
#include "cinta/data/safetensors.h"

namespace cinta::data {

inline constexpr uint64_t max_safetensors_header = 100'000'000;
inline constexpr size_t max_safetensors_dims = 8;
inline constexpr std::string_view metadata_key = "__metadata__";

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes
  Metadata metadata;
};

/// Throws FileError: `[safetensors] <file>: <parts>`.
struct FileComplaint {
  std::string_view file;
  Where where;

  template <class... Parts>
  [[noreturn]] void operator()(const Parts&... parts) const {
    throw FileError(located("safetensors", join(file, ": ", parts...), where));
  }
};

/// One row per type, in the order in which the Python library ranks them (it writes the last first).
struct SafetensorsDtype {
  StoredDtype dtype;
  std::string_view name;
};
inline constexpr SafetensorsDtype safetensors_dtypes[] = {
    {Dtype::boolean, "BOOL"},
    {Dtype::u8, "U8"},
    {Dtype::i8, "I8"},
    {Dtype::f8e5m2, "F8_E5M2"},
    {Dtype::f8e4m3, "F8_E4M3"},
    {Dtype::f8e4m3fnuz, "F8_E4M3FNUZ"},
    {Dtype::f8e5m2fnuz, "F8_E5M2FNUZ"},
    {CarriedDtype::i16, "I16"},
    {CarriedDtype::u16, "U16"},
    {Dtype::f16, "F16"},
    {Dtype::bf16, "BF16"},
    {Dtype::i32, "I32"},
    {CarriedDtype::u32, "U32"},
    {Dtype::f32, "F32"},
    {Dtype::f64, "F64"},
    {Dtype::i64, "I64"},
    {CarriedDtype::u64, "U64"},
};

/// The length of the header, from a file's first 8 bytes. `file` is for the message.
uint64_t safetensors_header_length(const unsigned char (&prefix)[8], uint64_t file_size, std::string_view file,
                                   Where where);

/// Parses the JSON and checks that the tensors tile exactly `data_size` bytes.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_size, std::string_view file,
                                           Where where);

/// Sorts the tensors by their bytes; throws unless each has the size of its shape and together they tile `data_size`.
void check_safetensors_layout(std::vector<SafetensorsEntry>& entries, uint64_t data_size, std::string_view file,
                              Where where);

/// The bytes a tensor of this shape takes, or nothing where that number does not fit into 63 bits. A zero anywhere
/// makes it 0, whatever the other sizes are.
std::optional<uint64_t> safetensors_size(StoredDtype dtype, const std::vector<int64_t>& shape);

/// What is wrong with `name` as the name of a tensor, or an empty view.
std::string_view safetensors_name_fault(std::string_view name);

/// `text` with control characters spelled \u00xx and cut after 80 bytes, so that a message stays one short line.
std::string printable(std::string_view text);

}  // namespace cinta::data
