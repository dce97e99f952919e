// The strict reader of a .safetensors header. nlohmann/json tokenises through its SAX interface, because its DOM keeps
// the last of two equal keys, wraps -8 to 2^64-8 and turns 8.0 into 8; what the tokens may be is decided here.
#include "cinta/data/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace cinta::data {
namespace {

using Json = nlohmann::json;

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(FileComplaint complain) : complain_(complain) {}
  SafetensorsHeader header;

  bool null() override {
    if (place_ != Place::metadata) unexpected("null");
    place_ = Place::root;  // the Python library takes null for no metadata
    return true;
  }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { unexpected(join("the signed number ", value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected(join("the number ", text)); }
  bool binary(binary_t&) override { unexpected("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::in_shape) {
      if (value > uint64_t(std::numeric_limits<int64_t>::max())) unexpected(join("the size ", value));
      if (entry_.shape.size() == max_safetensors_dims)
        complain_(at(), "found more than ", max_safetensors_dims, " dimensions, expected at most that many");
      entry_.shape.push_back(int64_t(value));
    } else if (place_ == Place::in_offsets) {
      if (offsets_ == 2) complain_(at(), "found more than 2 offsets, expected [begin,end]");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    } else {
      unexpected(join("the number ", value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::in_metadata) {
      header.metadata.emplace_back(key_, value);
      return true;
    }
    if (place_ != Place::dtype) unexpected(join("the string '", printable(value), "'"));
    const auto row = std::ranges::find(safetensors_dtypes, std::string_view(value), &SafetensorsDtype::name);
    if (row == std::end(safetensors_dtypes))
      complain_(at(), "found '", printable(value), "', expected one of ", known_dtypes());
    entry_.dtype = row->dtype;
    place_ = Place::tensor;
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::start) {
      place_ = Place::root;
    } else if (place_ == Place::tensor_value) {
      place_ = Place::tensor;
    } else if (place_ == Place::metadata) {
      place_ = Place::in_metadata;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == Place::root) return root_key(value);
    if (place_ == Place::in_metadata) {
      if (!metadata_keys_.insert(value).second) complain_(at(), "found the key '", printable(value), "' twice");
      key_ = value;
      return true;
    }
    const auto field = std::ranges::find(fields, std::string_view(value));
    if (field == std::end(fields))
      complain_(at(), "found the field '", printable(value), "', expected dtype, shape and data_offsets");
    const auto index = field - fields;
    if (seen_[index]) complain_(at(), "found the field '", *field, "' twice");
    seen_[index] = true;
    constexpr Place places[] = {Place::dtype, Place::shape, Place::offsets};
    place_ = places[index];
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      for (int i = 0; i < 3; ++i)
        if (!seen_[i]) complain_(at(), "found no field '", fields[i], "', expected dtype, shape and data_offsets");
      header.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::root ? Place::done : Place::root;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::shape) {
      place_ = Place::in_shape;
    } else if (place_ == Place::offsets) {
      place_ = Place::in_offsets;
      offsets_ = 0;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::in_offsets && offsets_ != 2)
      complain_(at(), "found ", offsets_, " offsets, expected [begin,end]");
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view reason = error.what();
    for (std::string_view skip : {"] ", "syntax error "})
      if (const auto at = reason.find(skip); at != reason.npos) reason.remove_prefix(at + skip.size());
    // nlohmann counts from 1; the header stands behind the 8 bytes of its length
    complain_("byte ", 8 + (position == 0 ? 0 : position - 1), ": the header is not JSON: ", printable(reason));
  }

 private:
  enum class Place {
    start,
    root,
    metadata,
    in_metadata,
    tensor_value,
    tensor,
    dtype,
    shape,
    in_shape,
    offsets,
    in_offsets,
    done
  };
  std::set<std::string> metadata_keys_;
  static constexpr std::string_view fields[] = {"dtype", "shape", "data_offsets"};

  bool root_key(const std::string& value) {
    if (!names_.insert(value).second) complain_("found the name '", printable(value), "' twice");
    if (value == metadata_key) {
      place_ = Place::metadata;
      return true;
    }
    if (const auto fault = safetensors_name_fault(value); !fault.empty())
      complain_("tensor '", printable(value), "': its name ", fault);
    entry_ = {};
    entry_.name = value;
    std::ranges::fill(seen_, false);
    place_ = Place::tensor_value;
    return true;
  }

  static std::string known_dtypes() {
    std::string out;
    for (const auto& row : safetensors_dtypes) out.append(out.empty() ? "" : ", ").append(row.name);
    return out;
  }

  /// "tensor 'x', field 'shape': "
  std::string at() const {
    if (place_ == Place::start || place_ == Place::root || place_ == Place::done) return "the header: ";
    if (place_ == Place::metadata || place_ == Place::in_metadata) return "__metadata__: ";
    std::string out = join("tensor '", printable(entry_.name), "'");
    if (place_ >= Place::dtype) out += join(", field '", field(), "'");
    return out + ": ";
  }
  std::string_view field() const {
    return place_ == Place::dtype                                ? fields[0]
           : place_ == Place::shape || place_ == Place::in_shape ? fields[1]
                                                                 : fields[2];
  }
  std::string_view wanted() const {
    switch (place_) {
      case Place::start:
        return "an object";
      case Place::metadata:
        return "an object of strings or null";
      case Place::in_metadata:
        return "a string";
      case Place::tensor_value:
        return "an object with dtype, shape and data_offsets";
      case Place::dtype:
        return "a string";
      case Place::shape:
        return "an array of sizes";
      case Place::in_shape:
        return "an integer from 0 to 2^63-1 without sign, point or exponent";
      case Place::offsets:
        return "an array of two offsets";
      case Place::in_offsets:
        return "an integer from 0 to 2^64-1 without sign, point or exponent";
      default:
        return "a key";
    }
  }
  [[noreturn]] void unexpected(const std::string& found) { complain_(at(), "found ", found, ", expected ", wanted()); }

  FileComplaint complain_;
  Place place_ = Place::start;
  std::set<std::string> names_;
  std::string key_;
  SafetensorsEntry entry_;
  bool seen_[3] = {};
  int offsets_ = 0;
};

}  // namespace

uint64_t safetensors_header_length(const unsigned char (&prefix)[8], uint64_t file_size, std::string_view file,
                                   Where where) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
  const FileComplaint complain{file, where};
  if (length > max_safetensors_header)
    complain("byte 0: found a header length of ", length, ", expected at most ", max_safetensors_header,
             "; is this a .safetensors file?");
  if (length + 8 > file_size)
    complain("byte 0: found a header length of ", length, ", expected at most ", file_size - 8,
             ", the rest of the file; the file is truncated or not .safetensors");
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_size, std::string_view file,
                                           Where where) {
  const FileComplaint complain{file, where};
  // Two leniencies of the tokeniser: it skips a byte order mark and takes a NUL for the end of the text.
  if (json.starts_with("\xEF\xBB\xBF")) complain("byte 8: found a byte order mark, expected '{'");
  if (const auto nul = json.find('\0'); nul != json.npos) complain("byte ", 8 + nul, ": found a NUL, expected JSON");
  HeaderReader reader(complain);
  Json::sax_parse(json.begin(), json.end(), &reader);
  check_safetensors_layout(reader.header.entries, data_size, file, where);
  return std::move(reader.header);
}

}  // namespace cinta::data
