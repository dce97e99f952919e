// Safetensors files that are damaged or hostile: each is refused, and the message says where and why.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "cinta/core/tensor.h"
#include "cinta/data/safetensors.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using cinta::testing::Scratch;
using cinta::testing::write_bytes;

namespace {

/// A file with this header, `size` zero bytes behind it, and the message that refuses it (empty: it is whole).
struct Case {
  std::string label;
  std::string header;
  size_t size;
  std::string message;
};

std::string prefix(uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += char(length >> (8 * i));
  return out;
}

std::string file_of(const std::string& header, size_t size) {
  return prefix(header.size()) + header + std::string(size, '\0');
}

std::string message_of(const std::string& path) {
  try {
    SafetensorsFile::open(path);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

void run(const std::vector<Case>& cases) {
  const Scratch scratch;
  const auto path = scratch / "bad.safetensors";
  for (const auto& [label, header, size, message] : cases) {
    INFO(label);
    write_bytes(path, file_of(header, size));
    const auto found = message_of(path);
    INFO(found);
    if (message.empty()) {
      CHECK(found.empty());
    } else {
      CHECK_THAT(found, Catch::StartsWith("[safetensors] " + path + ": "));
      CHECK_THAT(found, Catch::Contains(message));
      CHECK(found.find('\n') == found.npos);
    }
  }
}

/// A header with one tensor "a" of these fields.
std::string one(const std::string& fields) { return R"({"a":{)" + fields + "}}"; }
std::string shaped(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return one(R"("dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets);
}
std::string two(const std::string& first, const std::string& second) {
  return R"({"a":{"dtype":"U8","shape":)" + first + R"(},"b":{"dtype":"U8","shape":)" + second + "}}";
}
std::string nested(const std::string& open, const std::string& close, int depth) {
  std::string out;
  for (int i = 0; i < depth; ++i) out += open;
  for (int i = 0; i < depth; ++i) out += close;
  return out;
}

}  // namespace

TEST_CASE("safetensors: the length of the header", "[safetensors]") {
  const Scratch scratch;
  const auto path = scratch / "bad.safetensors";
  const auto refused = [&](const std::string& bytes, const std::string& message) {
    write_bytes(path, bytes);
    INFO(message);
    CHECK_THAT(message_of(path), Catch::Contains(message));
  };
  refused("", "found 0 bytes, expected at least 8");
  refused("1234567", "found 7 bytes, expected at least 8");
  refused(prefix(0), "the header is not JSON");
  refused(prefix(3) + "{}", "byte 0: found a header length of 3, expected at most 2");
  refused(prefix(1) + "{}", "the header is not JSON");
  refused(prefix(100'000'001) + "{}", "found a header length of 100000001, expected at most 100000000");
  refused(prefix(100'000'000) + "{}", "found a header length of 100000000, expected at most 2");
  refused(prefix(~uint64_t{0}) + "{}", "found a header length of 18446744073709551615");
  refused(prefix(~uint64_t{0} - 7) + "{}", "found a header length of 18446744073709551608");
  refused("PK\3\4 this is a zip archive", "is this a .safetensors file?");
  CHECK_THAT(message_of(scratch / "absent"), Catch::Contains("absent: cannot be opened: No such file"));
  CHECK_THAT(message_of(scratch.path()), Catch::Contains("is a directory"));
  REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(message_of(scratch / "pipe"), Catch::Contains("is no regular file"));
}

TEST_CASE("safetensors: the header as JSON", "[safetensors]") {
  const std::string good = shaped(R"("U8")", "[4]", "[0,4]");
  const auto named = [](const std::string& name) {
    return "{\"" + name + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  };
  run({
      {"whole", good, 4, ""},
      {"spaces around", " \t\r\n" + good + " \n\t ", 4, ""},
      {"name in UTF-8", named("\xc3\xb1"), 4, ""},
      {"name escaped", named("\\ud83d\\ude00"), 4, ""},
      {"path as name", named("../../x"), 4, ""},
      {"only spaces", "    ", 0, "the header is not JSON"},
      {"byte order mark", "\xEF\xBB\xBF" + good, 4, "byte 8: found a byte order mark"},
      {"NUL padding", good + std::string(3, '\0'), 4, "byte 61: found a NUL"},
      {"text behind", good + "x", 4, "byte 61: the header is not JSON"},
      {"second object", good + "{}", 4, "the header is not JSON"},
      {"comment", "/* */" + good, 4, "the header is not JSON"},
      {"comma at the end", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},})", 4, "the header is not JSON"},
      {"comma in shape", shaped(R"("U8")", "[4,]", "[0,4]"), 4, "the header is not JSON"},
      {"unclosed", good.substr(0, good.size() - 1), 4, "the header is not JSON"},
      {"single quotes", "{'a':{}}", 4, "the header is not JSON"},
      {"bad UTF-8", named("\xff"), 4, "the header is not JSON"},
      {"overlong UTF-8", named("\xc0\xaf"), 4, "the header is not JSON"},
      {"UTF-8 surrogate", named("\xed\xa0\x80"), 4, "the header is not JSON"},
      {"lone surrogate", named("\\ud800"), 4, "the header is not JSON"},
      {"raw control", named("a\nb"), 4, "the header is not JSON"},
      {"NaN", shaped(R"("U8")", "[NaN]", "[0,4]"), 4, "the header is not JSON"},
      {"leading zero", shaped(R"("U8")", "[04]", "[0,4]"), 4, "the header is not JSON"},
      {"plus sign", shaped(R"("U8")", "[+4]", "[0,4]"), 4, "the header is not JSON"},
      {"hexadecimal", shaped(R"("U8")", "[0x4]", "[0,4]"), 4, "the header is not JSON"},
      {"number past a double", shaped(R"("U8")", "[1e999]", "[0,4]"), 4, "the header is not JSON"},
      {"root is an array", "[]", 0, "the header: found an array, expected an object"},
      {"root is a number", "1", 0, "found the number 1, expected an object"},
      {"root is null", "null", 0, "the header: found null"},
      {"a million arrays", nested("[", "]", 1'000'000), 0, "found an array"},
      {"a million objects", nested("{\"a\":", "}", 1'000'000), 0, "the field 'a'"},
      {"empty name", named(""), 4, "tensor '': its name is empty"},
      {"NUL in a name", named("a\\u0000"), 4, "tensor 'a\\u0000': its name has a control character"},
      {"delete in a name", named("a\\u007f"), 4, "has a control character"},
      {"long name is cut in the message", named(std::string(500, 'n') + "\\u0001"), 4, "nnn...': its name has"},
  });
}

TEST_CASE("safetensors: keys and kinds of values", "[safetensors]") {
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  const std::string escaped = R"("\u0061":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  const auto metadata = [](const std::string& value) { return R"({"__metadata__":)" + value + "}"; };
  run({
      {"name twice", "{" + a + "," + a + "}", 4, "found the name 'a' twice"},
      {"name twice, once escaped", "{" + a + "," + escaped + "}", 4, "found the name 'a' twice"},
      {"metadata null", metadata("null"), 0, ""},
      {"metadata empty", metadata("{}"), 0, ""},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "found the name '__metadata__' twice"},
      {"metadata key twice", metadata(R"({"k":"1","k":"2"})"), 0, "__metadata__: found the key 'k' twice"},
      {"metadata key twice, once escaped", metadata(R"({"k":"1","\u006b":"2"})"), 0, "found the key 'k' twice"},
      {"metadata is a string", metadata(R"("pt")"), 0, "__metadata__: found the string 'pt', expected an object"},
      {"metadata is an array", metadata("[]"), 0, "__metadata__: found an array, expected an object of strings"},
      {"metadata of a number", metadata(R"({"k":1})"), 0, "__metadata__: found the number 1, expected a string"},
      {"metadata of null", metadata(R"({"k":null})"), 0, "__metadata__: found null, expected a string"},
      {"metadata of an object", metadata(R"({"k":{}})"), 0, "__metadata__: found an object, expected a string"},
      {"tensor is an array", R"({"a":["U8",[4],[0,4]]})", 4, "tensor 'a': found an array, expected an object with"},
      {"tensor is null", R"({"a":null})", 0, "tensor 'a': found null"},
      {"tensor is a string", R"({"a":"U8"})", 0, "tensor 'a': found the string 'U8'"},
      {"tensor is true", R"({"a":true})", 0, "tensor 'a': found true"},
      {"no fields", one(""), 0, "tensor 'a': found no field 'dtype'"},
      {"no dtype", one(R"("shape":[4],"data_offsets":[0,4])"), 4, "found no field 'dtype'"},
      {"no shape", one(R"("dtype":"U8","data_offsets":[0,4])"), 4, "found no field 'shape'"},
      {"no offsets", one(R"("dtype":"U8","shape":[4])"), 4, "found no field 'data_offsets'"},
      {"unknown field", one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1)"), 4, "found the field 'x'"},
      {"field twice", one(R"("dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4])"), 4,
       "found the field 'dtype' twice"},
      {"field twice, once escaped", one(R"("shape":[4],"sh\u0061pe":[4],"dtype":"U8","data_offsets":[0,4])"), 4,
       "found the field 'shape' twice"},
      {"fields in another order", one(R"("data_offsets":[0,4],"shape":[4],"dtype":"U8")"), 4, ""},
      {"unknown dtype", shaped(R"("U128")", "[1]", "[0,16]"), 16, "field 'dtype': found 'U128', expected one of BOOL"},
      {"dtype we lack: C64", shaped(R"("C64")", "[1]", "[0,8]"), 8, "found 'C64', expected one of"},
      {"dtype only carried", shaped(R"("U16")", "[1]", "[0,2]"), 2, ""},
      {"dtype only carried, too short", shaped(R"("U64")", "[1]", "[0,4]"), 4, "'a' u64[1]: found 4 bytes"},
      {"dtype we lack: F4", shaped(R"("F4")", "[2]", "[0,1]"), 1, "found 'F4', expected one of"},
      {"lower-case dtype", shaped(R"("f32")", "[1]", "[0,4]"), 4, "found 'f32', expected one of"},
      {"dtype is a number", shaped("5", "[1]", "[0,4]"), 4, "field 'dtype': found the number 5, expected a string"},
      {"dtype is null", shaped("null", "[1]", "[0,4]"), 4, "field 'dtype': found null"},
      {"shape is a number", shaped(R"("U8")", "4", "[0,4]"), 4, "field 'shape': found the number 4, expected an array"},
      {"shape of strings", shaped(R"("U8")", R"(["4"])", "[0,4]"), 4, "field 'shape': found the string '4'"},
      {"shape of arrays", shaped(R"("U8")", "[[4]]", "[0,4]"), 4, "field 'shape': found an array"},
      {"shape of objects", shaped(R"("U8")", "[{}]", "[0,4]"), 4, "field 'shape': found an object"},
      {"negative size", shaped(R"("U8")", "[-4]", "[0,4]"), 4, "field 'shape': found the signed number -4"},
      {"minus zero", shaped(R"("U8")", "[-0]", "[0,0]"), 0, "found the signed number 0, expected an integer"},
      {"size 4.0", shaped(R"("U8")", "[4.0]", "[0,4]"), 4, "found the number 4.0, expected an integer"},
      {"size 4e0", shaped(R"("U8")", "[4e0]", "[0,4]"), 4, "found the number 4e0, expected an integer"},
      {"size true", shaped(R"("U8")", "[true]", "[0,4]"), 4, "field 'shape': found true"},
      {"9 dimensions", shaped(R"("U8")", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "found more than 8 dimensions"},
      {"8 dimensions", shaped(R"("U8")", "[1,1,1,1,1,1,1,1]", "[0,1]"), 1, ""},
      {"negative offset", shaped(R"("U8")", "[4]", "[-4,4]"), 4, "'data_offsets': found the signed number -4"},
      {"offset 4.0", shaped(R"("U8")", "[4]", "[0,4.0]"), 4, "'data_offsets': found the number 4.0"},
      {"offset 2^64", shaped(R"("U8")", "[4]", "[0,18446744073709551616]"), 4, "found the number 18446744073709551616"},
      {"1 offset", shaped(R"("U8")", "[4]", "[4]"), 4, "found 1 offsets, expected [begin,end]"},
      {"3 offsets", shaped(R"("U8")", "[4]", "[0,4,4]"), 4, "found more than 2 offsets"},
      {"no offset", shaped(R"("U8")", "[4]", "[]"), 4, "found 0 offsets"},
      {"offsets are an object", shaped(R"("U8")", "[4]", "{}"), 4, "'data_offsets': found an object"},
  });
}

TEST_CASE("safetensors: where the data lies", "[safetensors]") {
  const std::string big = "9223372036854775807", bigger = "9223372036854775808", most = "18446744073709551615";
  run({
      {"any order in the header", two(R"([2],"data_offsets":[2,4])", R"([2],"data_offsets":[0,2])"), 4, ""},
      {"scalar", shaped(R"("F32")", "[]", "[0,4]"), 4, ""},
      {"empty tensors at one place", two(R"([0],"data_offsets":[0,0])", R"([3,0],"data_offsets":[0,0])"), 0, ""},
      {"empty tensor between", two(R"([0],"data_offsets":[0,0])", R"([4],"data_offsets":[0,4])"), 4, ""},
      {"empty tensor inside another", two(R"([4],"data_offsets":[0,4])", R"([0],"data_offsets":[2,2])"), 4,
       "tensor 'b': found its data at 2, expected 4 (it overlaps tensor 'a')"},
      {"same bytes twice", two(R"([4],"data_offsets":[0,4])", R"([4],"data_offsets":[0,4])"), 4, "it overlaps tensor"},
      {"overlap", two(R"([4],"data_offsets":[0,4])", R"([4],"data_offsets":[3,7])"), 7,
       "tensor 'b': found its data at 3, expected 4 (it overlaps tensor 'a')"},
      {"gap", two(R"([4],"data_offsets":[0,4])", R"([4],"data_offsets":[5,9])"), 9,
       "tensor 'b': found its data at 5, expected 4 (a gap after tensor 'a')"},
      {"not at 0", shaped(R"("U8")", "[4]", "[1,5]"), 5, "found its data at 1, expected 0 (a gap after the header)"},
      {"reversed", shaped(R"("U8")", "[4]", "[4,0]"), 4, "found data_offsets [4,0], expected begin <= end"},
      {"past the end", shaped(R"("U8")", "[8]", "[0,8]"), 4, "found its end at 8, expected at most 4"},
      {"trailing bytes", shaped(R"("U8")", "[4]", "[0,4]"), 8, "found 4 bytes behind the last tensor"},
      {"bytes and no tensor", "{}", 1, "found 1 bytes behind the last tensor"},
      {"too few bytes", shaped(R"("F32")", "[2]", "[0,4]"), 4,
       "tensor 'a' f32[2]: found 4 bytes in data_offsets [0,4], expected 8"},
      {"too many bytes", shaped(R"("F16")", "[2]", "[0,8]"), 8, "f16[2]: found 8 bytes"},
      {"wrong type size", shaped(R"("F64")", "[4]", "[0,16]"), 16, "f64[4]: found 16 bytes in data_offsets"},
      {"empty with bytes", shaped(R"("U8")", "[0]", "[0,4]"), 4, "u8[0]: found 4 bytes"},
      {"size 2^63", shaped(R"("U8")", "[" + bigger + "]", "[0,4]"), 4, "found the size 9223372036854775808"},
      {"size 2^64", shaped(R"("U8")", "[18446744073709551616]", "[0,4]"), 4, "found the number 18446744073709551616"},
      {"size 2^63-1", shaped(R"("U8")", "[" + big + "]", "[0," + big + "]"), 4, "expected at most 4, the bytes behind"},
      {"bytes overflow", shaped(R"("F64")", "[" + big + "]", "[0,4]"), 4, "does not fit into 63 bits"},
      {"product is 2^64", shaped(R"("U8")", "[4294967296,4294967296]", "[0,0]"), 0, "does not fit into 63 bits"},
      {"product wraps to 4", shaped(R"("F32")", "[4611686018427387905]", "[0,4]"), 4, "does not fit into 63 bits"},
      {"zero last after overflow", shaped(R"("F64")", "[" + big + "," + big + ",0]", "[0,0]"), 0, ""},
      {"zero first before overflow", shaped(R"("F64")", "[0," + big + "," + big + "]", "[0,0]"), 0, ""},
      {"zero and overflow with bytes", shaped(R"("U8")", "[0," + big + "," + big + "]", "[0,4]"), 4,
       "u8[0," + big + "," + big + "]: found 4 bytes in data_offsets [0,4], expected 0"},
      {"zero with one large size", shaped(R"("U8")", "[0," + big + "]", "[0,0]"), 0, ""},
      {"offsets at 2^64-1", shaped(R"("U8")", "[0]", "[" + most + "," + most + "]"), 0, "a gap after the header"},
      {"end at 2^64-1", shaped(R"("U8")", "[4]", "[0," + most + "]"), 4, "found 18446744073709551615 bytes"},
      {"misaligned but packed",
       R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
       5, ""},
  });
}

TEST_CASE("safetensors: a BOOL is 0 or 1", "[safetensors]") {
  const Scratch scratch;
  const auto path = scratch / "bool.safetensors";
  auto bytes = file_of(shaped(R"("BOOL")", "[4]", "[0,4]"), 4);
  bytes[bytes.size() - 2] = 2;
  write_bytes(path, bytes);
  const auto file = SafetensorsFile::open(path);
  char values[4];
  CHECK_THROWS_WITH(file.read(file.entries().at(0), values),
                    Catch::Contains("byte " + std::to_string(bytes.size() - 2) + ": tensor 'a': found 2 in a BOOL"));
}

TEST_CASE("safetensors: what no tensor can be made of is listed, and refused where it is read as one",
          "[safetensors]") {
  const Scratch scratch;
  const auto path = scratch / "odd.safetensors";
  const auto error = [&](const std::string& header, size_t size) {
    write_bytes(path, file_of(header, size));
    const auto file = SafetensorsFile::open(path);
    return cinta::testing::error_of<FileError>([&] { file.tensor(file.entries().at(0)); });
  };
  const std::string big = "9223372036854775807";
  CHECK_THAT(error(shaped(R"("F32")", "[0," + big + "," + big + "]", "[0,0]"), 0),
             Catch::Contains("odd.safetensors: tensor 'a': is empty, but its other sizes have no product in 63 bits"));
  CHECK_THAT(error(shaped(R"("U32")", "[2]", "[0,8]"), 8),
             Catch::Contains("odd.safetensors: tensor 'a': found the type u32, which files carry but nothing"));
  CHECK(error(shaped(R"("F32")", "[0,3]", "[0,0]"), 0) == "no error");
}
