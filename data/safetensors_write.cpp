// Writing .safetensors: the header in the Python library's order and spelling, then the bytes.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cinta/data/atomic_file.h"
#include "cinta/data/safetensors_header.h"

namespace cinta::data {
namespace {

int rank_of(StoredDtype dtype) {
  return int(std::ranges::find(safetensors_dtypes, dtype, &SafetensorsDtype::dtype) - std::begin(safetensors_dtypes));
}

std::string quoted(const std::string& text, Where where) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw ValueError(located("safetensors", join("'", printable(text), "' is not UTF-8"), where));
  }
}

void check(const std::vector<TensorBytes>& tensors, Where where) {
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    const auto& [name, dtype, shape, bytes] = tensor;
    const auto say = [&](bool ok, const auto&... parts) {
      require(ok, "safetensors", where, "tensor '", printable(tensor.name), "': ", parts...);
    };
    const auto fault = safetensors_name_fault(name);
    say(fault.empty(), "its name ", fault);
    say(name != metadata_key, "this name is reserved");
    say(names.insert(name).second, "its name is used twice");
    say(shape.size() <= max_safetensors_dims, "has ", shape.size(), " dimensions, at most ", max_safetensors_dims);
    say(std::ranges::all_of(shape, [](int64_t dim) { return dim >= 0; }), "has a negative size");
    const auto size = safetensors_size(dtype, shape);
    say(size.has_value(), "the number of its bytes does not fit into 63 bits");
    say(*size == 0 || bytes != nullptr, "has no data");
  }
}

std::string header_text(const std::vector<TensorBytes>& tensors, const Metadata& metadata, Where where) {
  std::string out = "{";
  const auto comma = [&] { return out.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata)
      pairs += (pairs.empty() ? "" : ",") + quoted(key, where) + ":" + quoted(value, where);
    out += "\"" + std::string(metadata_key) + "\":{" + pairs + "}";
  }
  uint64_t begin = 0;
  for (const auto& [name, dtype, shape, bytes] : tensors) {
    std::string dims;
    for (int64_t dim : shape) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    const uint64_t end = begin + *safetensors_size(dtype, shape);
    out += comma() + quoted(name, where) +
           join(":{\"dtype\":\"", safetensors_dtypes[rank_of(dtype)].name, "\",\"shape\":[", dims,
                "],\"data_offsets\":[", begin, ",", end, "]}");
    begin = end;
  }
  out += "}";
  out.append((8 - out.size() % 8) % 8, ' ');
  require(out.size() <= max_safetensors_header, "safetensors", where, "the header takes ", out.size(),
          " bytes, at most ", max_safetensors_header);
  return out;
}

}  // namespace

void write_safetensors(ByteSink& sink, std::vector<TensorBytes> tensors, const Metadata& metadata, Where where) {
  std::ranges::sort(tensors, {}, [](const auto& tensor) {
    return std::pair<int, std::string_view>(-rank_of(tensor.dtype), tensor.name);
  });
  check(tensors, where);
  const std::string header = header_text(tensors, metadata, where);
  unsigned char prefix[8];
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  sink.write(prefix, sizeof prefix);
  sink.write_text(header);
  for (const auto& tensor : tensors)
    if (const uint64_t size = *safetensors_size(tensor.dtype, tensor.shape); size > 0) sink.write(tensor.bytes, size);
}

void save_safetensors(const std::string& path, std::vector<TensorBytes> tensors, const Metadata& metadata,
                      Where where) {
  AtomicFile file(path, where);
  write_safetensors(file, std::move(tensors), metadata, where);
  file.commit(where);
}

}  // namespace cinta::data
