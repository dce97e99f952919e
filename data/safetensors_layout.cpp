// Where the tensors of a .safetensors file may lie: sizes that match the shapes, side by side, nothing left over.
#include <algorithm>
#include <limits>

#include "cinta/data/safetensors_header.h"

namespace cinta::data {
namespace {

void check_size(const SafetensorsEntry& entry, const FileComplaint& complain) {
  const auto size = safetensors_size(entry.dtype, entry.shape);
  std::string shape;
  for (int64_t dim : entry.shape) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
  const std::string what = join("tensor '", printable(entry.name), "' ", entry.dtype, "[", shape, "]");
  if (entry.begin > entry.end)
    complain(what, ": found data_offsets [", entry.begin, ",", entry.end, "], expected begin <= end");
  if (!size) complain(what, ": the number of its bytes does not fit into 63 bits");
  if (*size != entry.size_bytes())
    complain(what, ": found ", entry.size_bytes(), " bytes in data_offsets [", entry.begin, ",", entry.end,
             "], expected ", *size);
}

/// The tensors must stand side by side from byte 0 to the end of the file.
void check_tiling(const std::vector<SafetensorsEntry>& entries, uint64_t data_size, const FileComplaint& complain) {
  uint64_t expected = 0;
  const SafetensorsEntry* before = nullptr;
  for (const auto& entry : entries) {
    if (entry.begin != expected)
      complain("tensor '", printable(entry.name), "': found its data at ", entry.begin, ", expected ", expected,
               entry.begin < expected ? " (it overlaps " : " (a gap after ",
               before ? join("tensor '", printable(before->name), "'") : "the header", ")");
    if (entry.end > data_size)
      complain("tensor '", printable(entry.name), "': found its end at ", entry.end, ", expected at most ", data_size,
               ", the bytes behind the header; the file is truncated");
    expected = entry.end;
    before = &entry;
  }
  if (expected != data_size)
    complain("found ", data_size - expected, " bytes behind the last tensor, expected the end of the file");
}

}  // namespace

void check_safetensors_layout(std::vector<SafetensorsEntry>& entries, uint64_t data_size, std::string_view file,
                              Where where) {
  const FileComplaint complain{file, where};
  std::ranges::sort(entries, {}, [](const auto& entry) { return std::pair(entry.begin, entry.end); });
  for (const auto& entry : entries) check_size(entry, complain);
  check_tiling(entries, data_size, complain);
}

std::optional<uint64_t> safetensors_size(StoredDtype dtype, const std::vector<int64_t>& shape) {
  constexpr uint64_t limit = std::numeric_limits<int64_t>::max();
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  auto size = uint64_t(size_of(dtype));
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(size, uint64_t(dim), &size) || size > limit) return std::nullopt;
  return size;
}

std::string_view safetensors_name_fault(std::string_view name) {
  if (name.empty()) return "is empty";
  for (unsigned char c : name)
    if (c < 0x20 || c == 0x7F) return "has a control character";
  return {};
}

std::string printable(std::string_view text) {
  constexpr size_t longest = 80;
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (unsigned char c : text.substr(0, longest))
    if (c < 0x20 || c == 0x7F)
      out.append("\\u00").append(1, hex[c >> 4]).append(1, hex[c & 15]);
    else
      out += char(c);
  return text.size() > longest ? out + "..." : out;
}

}  // namespace cinta::data
