// Tables and labelled rows from text; whole files, plain and gzip, good and damaged.
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "cinta/data/csv.h"
#include "cinta/data/examples.h"
#include "cinta/data/file.h"
#include "data_helpers.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::data;
using namespace cinta::testing;
using Catch::Matchers::Contains;

namespace {

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string noise(size_t count) {
  std::string out(count, '\0');
  uint32_t state = 1;
  for (char& c : out) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return out;
}

}  // namespace

TEST_CASE("A table of numbers", "[data]") {
  const std::vector<double> wanted = {1, -2.5, 3e4, 0, 5, .125};
  for (const char* text : {
           "1,-2.5,3e4\n0,5,.125\n",                       // plain
           "1,-2.5,3e4\r\n0,5,.125\r\n",                   // CRLF
           "1,-2.5,3e4\n0,5,.125",                         // no end of the last line
           "1,-2.5,3e4\n0,5,.125\n\n \r\n\n",              // blank lines at the end
           "a,b,c\n1,-2.5,3e4\n0,5,.125\n",                // names
           "\"a, b\",\"\",c\n1,-2.5,3e4\n0,5,.125\n",      // quoted names, one with a comma
           "\xef\xbb\xbf+1,-2.5, 3e4 \n0\t,\"5\",.125\n",  // byte order mark, plus sign, blanks, quotes
       }) {
    INFO(text);
    const Table table = parse_csv(text, "t");
    CHECK(table.rows == 2);
    CHECK(table.columns == 3);
    CHECK(table.values == wanted);
  }
  CHECK(parse_csv("1\n2\n", "t", {.header = Header::present}).rows == 1);
  CHECK(parse_csv("1e-400,-2e-330,1e-300\n", "t").values == std::vector<double>{0, 0, 1e-300});
}

TEST_CASE("A column that is not read may hold anything", "[data]") {
  const Table table = parse_csv("1,?,3\n4,setosa,6\n", "t", {.unread = 2});
  CHECK(table.values == std::vector<double>{1, 0, 3, 4, 0, 6});
  CHECK_THAT(error_of<FileError>([&] { parse_csv("1,?,x\n", "t", {.unread = 2}); }), Contains("column 3: found \"x\""));
}

TEST_CASE("The first line of a table is a header or a row", "[data]") {
  for (const char* header : {"a,b,c", "a,,", "0,1,2", "\"0\",\"1\",\"2\"", "NA,b,?", "5 minutes,10 minutes,class"}) {
    INFO(header);
    const Table table = parse_csv(std::string(header) + "\n5,6,7\n", "t");
    CHECK(table.has_header());
    CHECK(table.values == std::vector<double>{5, 6, 7});
  }
  for (const char* row : {"0,1", "0,1,3", "1,2,3", "0,1,2.0", "0"}) {
    INFO(row);
    CHECK(!parse_csv(row, "t").has_header());
  }
  for (const char* row : {"NA,NA", "nan,NaN", ",", "?,null", "None,N/A"}) {
    INFO(row);
    CHECK_THAT(error_of<FileError>([&] { parse_csv(std::string(row) + "\n5,6\n", "t"); }),
               Contains("t: line 1: column 1: found "));
  }
}

TEST_CASE("Damaged tables say file, line and column", "[data]") {
  struct Case {
    std::string text, message;
    CsvOptions options = {};
  };
  const std::vector<Case> cases = {
      {"", "t.csv: has no row of numbers"},
      {"\n\n", "t.csv: has no row of numbers"},
      {"a,b\n", "t.csv: has no row of numbers"},
      {"1,2\n3\n", "t.csv: line 2: found 1 columns, expected 2"},
      {"1,2\n3,4,5\n", "t.csv: line 2: found 3 columns, expected 2"},
      {"1,2,3\n", "t.csv: line 1: found 3 columns, expected 65", {.columns = 65}},
      {"a,b\n1,2,3\n", "t.csv: line 2: found 3 columns, expected 2"},
      {"1,2\n3,four\n", "t.csv: line 2: column 2: found \"four\", expected a finite number"},
      {"a,2\n", "t.csv: line 1: column 1: found \"a\", expected a finite number"},
      {"a,b\n", "t.csv: line 1: column 1: found \"a\"", {.header = Header::absent}},
      {"1,2\n3,\n", "t.csv: line 2: column 2: found nothing, expected a finite number"},
      {"1,2\n3,four\n", "line 2: column 2: found \"four\", expected a class", {.last_column = "a class"}},
      {"one,2\n", "line 1: column 1: found \"one\", expected a finite number", {.last_column = "a class"}},
      {"1,nan\n", "column 2: found \"nan\""},
      {"1,1e99\n", "column 2: found \"1e99\""},
      {"1,-1e400\n", "column 2: found \"-1e400\""},
      {"1e39,2\n", "column 1: found \"1e39\", expected a number in the range of f32, at most 3.4e38 from 0"},
      {"1,-1e400\n", "found \"-1e400\", expected a number in the range of f32"},
      {"1,inf\n", "column 2: found \"inf\", expected a finite number"},
      {"1e400,1\n", "found \"1e400\", expected a number in the range of f32", {.last_column = "a class"}},
      {"1,1e400\n", "found \"1e400\", expected a class", {.last_column = "a class"}},
      {"1,inf\n", "column 2: found \"inf\""},
      {"1,0x10\n", "column 2: found \"0x10\""},
      {"1,+-1\n", "column 2: found \"+-1\""},
      {"1;2\n", "t.csv: line 1: the fields seem to be separated by ';', expected commas"},
      {"a;b\n1;2\n", "t.csv: line 2: the fields seem to be separated by ';'"},
      {"a;b\n0,5;1\n", "t.csv: line 2: the fields seem to be separated by ';'"},  // decimal commas
      {"1\t2\tx\n", "t.csv: line 1: the fields seem to be separated by tabs"},
      {"1.5 2\n", "t.csv: line 1: the fields seem to be separated by blanks"},
      {"1|2\n", "t.csv: line 1: the fields seem to be separated by '|'"},
      {"1,two words\n", "found \"two words\", expected a finite number"},
      {"1,2\n\n3,4\n", "t.csv: line 2: blank line inside the table"},
      {"\n\n1,2\n", "t.csv: line 1: blank line before the table"},
      {std::string("1,2\n3,\0 4\n", 10), "t.csv: line 2: found a NUL byte, expected text"},
      {std::string("\xff\xfe"
                   "1\0,\0",
                   6),
       "t.csv: is text in UTF-16, expected ASCII or UTF-8"},
      {std::string("\xfe\xff\0"
                   "1\0,",
                   6),
       "t.csv: is text in UTF-16"},
      {"1,\"2\n", "t.csv: line 1: a quote is never closed"},
      {"1,a long field that goes on and on\n", "found \"a long field that goes o...\""},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK_THAT(error_of<FileError>([&] { parse_csv(c.text, "t.csv", c.options); }), Contains(c.message));
  }
}

TEST_CASE("Files are read whole, plain or gzip", "[data]") {
  const Scratch folder;
  const std::string bytes = noise(150000) + std::string(150000, 'a'), packed = gzip(bytes);
  write_bytes(folder / "plain", bytes);
  write_bytes(folder / "packed", packed);
  write_bytes(folder / "members", packed + gzip("tail"));
  write_bytes(folder / "empty", "");
  CHECK(read_file(folder / "plain") == bytes);
  CHECK(read_file(folder / "packed") == bytes);
  CHECK(read_file(folder / "members") == bytes + "tail");
  CHECK(read_file(folder / "empty").empty());

  const auto message = [&](const std::string& name, size_t limit = maximum_file_bytes) {
    return error_of<FileError>([&] { read_file(folder / name, limit); });
  };
  CHECK_THAT(message("missing"), Contains("missing: cannot be opened: No such file or directory"));
  CHECK_THAT(message(""), Contains("is a directory, expected a file"));
  CHECK_THAT(message("plain", 1000), Contains("exceeds the limit of 1000 bytes"));
  CHECK_THAT(message("packed", 299999), Contains("decompressed size exceeds the limit of 299999 bytes"));
  for (size_t cut : {size_t{2}, size_t{9}, packed.size() / 2, packed.size() - 8, packed.size() - 1}) {
    INFO(cut);
    write_bytes(folder / "cut", packed.substr(0, cut));
    CHECK_THAT(message("cut"), Contains("gzip data is truncated: it ends at byte " + std::to_string(cut)));
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // a bit of the checksum
  write_bytes(folder / "crc", damaged);
  CHECK_THAT(message("crc"), Contains("gzip data is damaged") && Contains("incorrect data check"));
  damaged = packed;
  damaged[packed.size() - 1] ^= 1;  // a bit of the size
  write_bytes(folder / "size", damaged);
  CHECK_THAT(message("size"), Contains("gzip data is damaged") && Contains("incorrect length check"));
  write_bytes(folder / "stray", packed + "stray");
  CHECK_THAT(message("stray"), Contains("5 stray bytes after the end of the gzip data"));
  if (::geteuid() != 0) {  // root may read everything
    ::chmod((folder / "plain").c_str(), 0);
    CHECK_THAT(message("plain"), Contains("cannot be opened: Permission denied"));
  }
}

TEST_CASE("Labelled rows from a table", "[data]") {
  const Examples examples = examples_from_table(parse_csv("1,2,0\n3,4,2\n5,6,2\n", "t"), "t");
  CHECK(examples.count == 3);
  CHECK(examples.features == 2);
  CHECK(examples.classes == 3);
  CHECK(examples.inputs == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(examples.labels == std::vector<int64_t>{0, 2, 2});
  const auto message = [](const char* text, int64_t classes) {
    return error_of<FileError>([&] { examples_from_table(parse_csv(text, "t.csv"), "t.csv", classes); });
  };
  CHECK_THAT(message("1,2,0\n3,4,2\n", 2),
             Contains("t.csv: line 2: column 3: found 2, expected the class, a whole number in [0, 2)"));
  CHECK_THAT(message("1,-1\n", 0), Contains("line 1: column 2: found -1"));
  CHECK_THAT(message("a,b\n1,0\n2,-1\n", 0), Contains("line 3: column 2: found -1"));
  CHECK_THAT(message("1,0.5\n", 0), Contains("found 0.5"));
  CHECK_THAT(
      message("area,price\n1,0\n2,804437\n", 0),
      Contains("t.csv: line 3: column 2: found 804437, expected the class, a whole number in [0, 2): there would "
               "be more classes than rows"));
  CHECK_THAT(message("1,0\n2,1e30\n", 0), Contains("found 1e+30"));
  CHECK(message("1,0\n2,1\n", 0) == "no error");
  CHECK_THAT(message("1,1\n2,1\n", 0), Contains("t.csv: every row is of class 1, expected two classes at least"));
  CHECK(message("1,1\n2,1\n", 2) == "no error");  // the model that these are for knows of a second class
  CHECK_THAT(message("1\n", 0), Contains("found 1 columns, expected features and then the class"));
}

TEST_CASE("Standardised training rows have mean 0 and deviation 1", "[data]") {
  Examples rows{3, 3, 1, {1, 5, 10, 2, 5, 20, 6, 5, 30}, {0, 0, 0}};
  const Standardizer standardizer = Standardizer::learn(rows);
  standardizer.apply(rows);
  for (size_t f : {size_t{0}, size_t{2}}) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 3; ++i) sum += rows.inputs[3 * i + f], squares += std::pow(rows.inputs[3 * i + f], 2);
    CHECK(std::abs(sum) < 1e-6);
    CHECK(squares == Approx(3));
  }
  for (size_t i = 0; i < 3; ++i) CHECK(rows.inputs[3 * i + 1] == 0);  // a constant feature is not blown up
  Examples scales{2, 2, 1, {0, 100, 1e-3, 300}, {0, 0}};              // each feature has a scale of its own
  Standardizer::learn(scales).apply(scales);
  CHECK(scales.inputs[0] == Approx(-1));
  CHECK(scales.inputs[1] == Approx(-1));
  Examples rare{100, 1, 1, std::vector<double>(100, 0), std::vector<int64_t>(100, 0)};
  rare.inputs[7] = -1;  // ten deviations from the mean
  Standardizer::learn(rare).apply(rare);
  CHECK(rare.inputs[7] == -Standardizer::furthest);
  Examples close{4, 3, 1, {}, {0, 0, 0, 0}};  // f32 takes each of these for a constant; the second and third are one
  for (const double time : {1700000000, 1700000010, 1700000000, 1700000010})
    close.inputs.insert(close.inputs.end(), {time, 0.1, time > 1700000000 ? 0.3 : 0.1 + 0.2});
  Standardizer::learn(close).apply(close);
  for (size_t row = 0; row < 4; ++row) {
    CHECK(close.inputs[3 * row] == (row % 2 == 0 ? -1 : 1));
    CHECK(close.inputs[3 * row + 1] == 0);
    CHECK(std::abs(close.inputs[3 * row + 2]) < 1e-15);
  }
  Examples other{1, 2, 1, {0, 0}, {0}};
  CHECK_THAT(error_of<ShapeError>([&] { standardizer.apply(other); }), Contains("learnt on 3 features, given 2"));
}
