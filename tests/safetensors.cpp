// Safetensors files that are whole: every type through a file and back, and equality with the Python library's bytes.
#include "cinta/data/safetensors.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using cinta::testing::read_bytes;
using cinta::testing::Scratch;
using cinta::testing::write_bytes;

namespace {

struct Buffer final : ByteSink {
  std::string bytes;
  void write(const void* from, size_t count) override { bytes.append(static_cast<const char*>(from), count); }
};

std::string written(std::vector<TensorBytes> tensors, const Metadata& metadata = {{"format", "pt"}}) {
  Buffer out;
  write_safetensors(out, std::move(tensors), metadata);
  return out.bytes;
}

constexpr StoredDtype every_dtype[] = {
    Dtype::f64,        Dtype::f32,        Dtype::f16,        Dtype::bf16,       Dtype::f8e4m3,    Dtype::f8e5m2,
    Dtype::f8e4m3fnuz, Dtype::f8e5m2fnuz, Dtype::i8,         Dtype::i32,        Dtype::i64,       Dtype::u8,
    Dtype::boolean,    CarriedDtype::i16, CarriedDtype::u16, CarriedDtype::u32, CarriedDtype::u64};

/// 0 1 2 3 4 5 (0 1 0 1 0 1 for bool) in the type's own bytes.
std::string six_elements(StoredDtype dtype) {
  return dtype.visit([]<class T>() {
    std::string out;
    for (int i = 0; i < 6; ++i) {
      T value;
      if constexpr (std::is_same_v<T, bool>)
        value = i % 2 == 1;
      else if constexpr (std::is_integral_v<T>)
        value = T(i);
      else
        value = T(float(i));
      out.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return out;
  });
}

std::string message_of(const std::string& path) {
  try {
    SafetensorsFile::open(path);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("safetensors: the bytes are the Python library's", "[safetensors]") {
  const std::string golden = CINTA_SOURCE_DIR "/tests/golden/all_dtypes.safetensors";
  std::vector<std::string> keep;
  keep.reserve(std::size(every_dtype));
  std::vector<TensorBytes> tensors;
  for (const StoredDtype dtype : every_dtype) {
    keep.push_back(six_elements(dtype));
    tensors.push_back({"matrix." + std::string(name_of(dtype)), dtype, {2, 3}, keep.back().data()});
    tensors.push_back({"empty." + std::string(name_of(dtype)), dtype, {0, 4}, nullptr});
  }
  const float scalar = -1.5f;
  const int32_t one = 1;
  tensors.push_back({"scalar", Dtype::f32, {}, &scalar});
  tensors.push_back({"quote \" \\ / \u00f1 \U0001f600", Dtype::i32, {1}, &one});

  CHECK(written(tensors) == read_bytes(golden));

  const auto file = SafetensorsFile::open(golden);
  CHECK(file.metadata() == Metadata{{"format", "pt"}});
  CHECK(file.entries().size() == tensors.size());
  for (const auto& tensor : tensors) {
    INFO(tensor.name);
    const auto* entry = file.find(tensor.name);
    REQUIRE(entry != nullptr);
    CHECK(entry->dtype == tensor.dtype);
    CHECK(entry->shape == tensor.shape);
    std::string bytes(entry->size_bytes(), '?');
    file.read(*entry, bytes.data());
    CHECK((bytes.empty() || std::memcmp(bytes.data(), tensor.bytes, bytes.size()) == 0));
  }
  CHECK(file.find("matrix") == nullptr);
}

TEST_CASE("safetensors: what is written is read", "[safetensors]") {
  const Scratch scratch;
  const auto path = scratch / "model.safetensors";
  SECTION("no tensors, no metadata") {
    save_safetensors(path, {}, {});
    CHECK(SafetensorsFile::open(path).entries().empty());
    CHECK(SafetensorsFile::open(path).metadata().empty());
    CHECK(read_bytes(path) == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  }
  SECTION("metadata with quotes, line ends and other scripts") {
    const Metadata metadata = {{"a \"b\"", "line\nend\t"}, {"ключ", "値"}, {"", ""}};
    save_safetensors(path, {}, metadata);
    CHECK(SafetensorsFile::open(path).metadata() == metadata);
  }
  SECTION("the header is padded so that data starts at a multiple of 8") {
    const std::string data(64, 'x');
    for (size_t length = 1; length < 20; ++length) {
      save_safetensors(path, {{std::string(length, 'n'), Dtype::f64, {8}, data.data()}});
      CHECK((read_bytes(path).size() - data.size()) % 8 == 0);
      CHECK(SafetensorsFile::open(path).entries().at(0).name.size() == length);
    }
  }
  SECTION("a moved file still reads") {
    const int32_t value = 7;
    save_safetensors(path, {{"x", Dtype::i32, {}, &value}});
    auto first = SafetensorsFile::open(path);
    const auto second = std::move(first);
    int32_t back = 0;
    second.read(second.entries().at(0), &back);
    CHECK(back == 7);
  }
}

TEST_CASE("safetensors: a file cut at any byte, or with a byte more, is refused", "[safetensors]") {
  const Scratch scratch;
  const auto path = scratch / "cut.safetensors";
  const std::string data(24, '\1');
  const auto whole = written({{"a", Dtype::f32, {2}, data.data()}, {"b", Dtype::boolean, {3, 5}, data.data()}});
  write_bytes(path, whole);
  REQUIRE(message_of(path).empty());
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path, whole.substr(0, length));
    INFO(length);
    CHECK_THAT(message_of(path), Catch::Contains("cut.safetensors: "));
  }
  write_bytes(path, whole + "1234");
  CHECK_THAT(message_of(path), Catch::Contains("found 4 bytes behind the last tensor"));
}

TEST_CASE("safetensors: a file that shrinks under the reader is an error", "[safetensors]") {
  const Scratch scratch;
  const auto path = scratch / "shrinks.safetensors";
  std::string data(32, '\1');
  save_safetensors(path, {{"a", Dtype::f32, {8}, data.data()}});
  const auto file = SafetensorsFile::open(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THROWS_WITH(file.read(file.entries().at(0), data.data()), Catch::Contains("found the end of the file"));
}

TEST_CASE("safetensors: the writer refuses what no reader takes", "[safetensors]") {
  const std::string data(64, '\1');
  const auto refused = [&](std::string name, std::vector<int64_t> shape, std::string reason, const void* bytes) {
    INFO(reason);
    CHECK_THROWS_WITH(written({{std::move(name), Dtype::f32, std::move(shape), bytes}}), Catch::Contains(reason));
  };
  refused("", {1}, "its name is empty", data.data());
  refused("a\nb", {1}, "tensor 'a\\u000ab': its name has a control character", data.data());
  refused("__metadata__", {1}, "reserved", data.data());
  refused("a\xff", {1}, "is not UTF-8", data.data());
  refused("a", {-1}, "negative size", data.data());
  refused("a", {1, 1, 1, 1, 1, 1, 1, 1, 1}, "9 dimensions", data.data());
  refused("a", {int64_t{1} << 40, int64_t{1} << 40}, "does not fit", data.data());
  refused("a", {1}, "has no data", nullptr);
  CHECK_THROWS_WITH(written({{"a", Dtype::f32, {1}, data.data()}, {"a", Dtype::i32, {1}, data.data()}}),
                    Catch::Contains("used twice"));
}
