// IDX: every type, and every way in which a file can be wrong.
#include <catch2/catch.hpp>

#include "cinta/data/idx.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

std::string u32(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string header(int type, std::initializer_list<uint32_t> sizes) {
  std::string out{0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (uint32_t size : sizes) out += u32(size);
  return out;
}

}  // namespace

TEST_CASE("IDX arrays of every type", "[data]") {
  const IdxArray bytes = parse_idx(header(8, {2, 3}) + "\x00\x01\x7f\x80\xfe\xff"s, "t");
  CHECK(bytes.sizes == std::vector<int64_t>{2, 3});
  CHECK(bytes.values == std::vector<double>{0, 1, 127, 128, 254, 255});
  CHECK(parse_idx(header(9, {2}) + "\x7f\x80"s, "t").values == std::vector<double>{127, -128});
  CHECK(parse_idx(header(11, {2}) + "\x01\x00\xff\xfe"s, "t").values == std::vector<double>{256, -2});
  CHECK(parse_idx(header(12, {1}) + u32(0xfffffffdu), "t").values == std::vector<double>{-3});
  CHECK(parse_idx(header(13, {1}) + u32(0xbfc00000u), "t").values == std::vector<double>{-1.5f});
  CHECK(parse_idx(header(14, {1}) + u32(0x40040000u) + u32(0), "t").values == std::vector<double>{2.5f});
  CHECK(parse_idx(header(8, {0}), "t").values.empty());
  CHECK(parse_idx(header(8, {0xffffffffu, 0xffffffffu, 0, 0xffffffffu}), "t").values.empty());
}

TEST_CASE("Damaged IDX files say the byte", "[data]") {
  struct Case {
    std::string bytes, message;
  };
  const std::vector<Case> cases = {
      {"", "t: byte 0: found 0 bytes, expected a header of at least 8"},
      {"\0\0\x08"s, "byte 0: found 3 bytes"},
      {"\0\1\x08\1"s + u32(1) + "a", "byte 0: found 1, expected two zero bytes"},
      {"0,0,5\n", "expected two zero bytes; is it IDX?"},
      {header(7, {1}) + "a", "byte 2: found type 7, expected one of 8, 9, 11, 12, 13, 14"},
      {header(10, {1}) + "a", "byte 2: found type 10"},
      {header(8, {}) + "a", "byte 3: found 0 dimensions, expected 1 to 4"},
      {header(8, {1, 1, 1, 1, 1}) + "a", "byte 3: found 5 dimensions"},
      {header(8, {2, 3}).substr(0, 10), "byte 10: the file ends inside its header of 12 bytes"},
      {header(8, {2, 3}) + "abcde", "byte 17: the file ends after 5 data bytes, expected 6; it is truncated"},
      {header(8, {2, 3}) + "abcdefg", "byte 18: 1 stray bytes after the data"},
      {header(8, {0, 3}) + "a", "byte 12: 1 stray bytes after the data"},
      {header(13, {2}) + "abcdefg", "expected 8; it is truncated"},
      {header(13, {2}) + u32(0x3f800000u) + u32(0x7fc00000u), "byte 12: found nan, expected a finite number"},
      {header(13, {1}) + u32(0xff800000u), "byte 8: found -inf, expected a finite number"},
      {header(14, {1}) + u32(0x7fe00000u) + u32(0),
       "byte 8: found 8.98847e+307, expected a finite number that fits f32"},
      {header(8, {0xffffffffu, 0xffffffffu, 0xffffffffu}), "the sizes ask for more than 4294967296 bytes"},
      {header(14, {0x80000000u, 0x40000000u, 4, 4}), "byte 4: the sizes ask for more than"},
  };
  for (const Case& c : cases) {
    INFO(c.message);
    CHECK_THAT(error_of<FileError>([&] { parse_idx(c.bytes, "t"); }), Contains(c.message));
  }
}

TEST_CASE("Images and labels belong together", "[data]") {
  const Scratch folder;
  const std::string images = folder / "images", labels = folder / "labels";
  write_bytes(images, header(8, {2, 1, 2}) + "\1\2\3\4"s);
  write_bytes(labels, header(8, {2}) + "\3\0"s);
  const Examples examples = read_idx_examples(images, labels, 4);
  CHECK(examples.count == 2);
  CHECK(examples.features == 2);
  CHECK(examples.classes == 4);
  CHECK(examples.inputs == std::vector<double>{1, 2, 3, 4});
  CHECK(examples.labels == std::vector<int64_t>{3, 0});
  const auto message = [](const std::string& a, const std::string& b, int64_t classes = 0) {
    return error_of<FileError>([&] { read_idx_examples(a, b, classes); });
  };
  CHECK_THAT(message(labels, images), Contains("labels: found 1 dimension") && Contains("this is a labels file"));
  CHECK_THAT(message(images, images), Contains("images: found 3 dimensions") && Contains("this is an images file"));
  CHECK_THAT(message(images, labels, 3),
             Contains("labels: label 0: found 3, expected the class, a whole number in [0, 3)"));
  write_bytes(labels, header(8, {3}) + "\3\0\1"s);
  CHECK_THAT(message(images, labels), Contains("images has 2 images, but ") && Contains("labels has 3 labels"));
  write_bytes(images, header(8, {0, 1, 2}));
  write_bytes(labels, header(8, {0}));
  CHECK_THAT(message(images, labels), Contains("has no images"));
}
