// One pass over the text, line by line, field by field.
#include "cinta/data/csv.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <locale>
#include <optional>
#include <sstream>

#include "cinta/data/file.h"

namespace cinta::data {
namespace {

constexpr size_t most_columns = size_t{1} << 24;  // the fields of a line are held at once

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Takes the next line off `text`, without its LF or CRLF.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

/// Fills `fields` from one line. A comma inside double quotes belongs to the field; the outer quotes are taken off.
/// Returns false for a quote that is never closed. Of a line of too many fields it takes one more than may be.
bool split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size() && fields.size() <= most_columns; ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (line[i] != ',' || quoted)) continue;
    std::string_view field = trim(line.substr(begin, i - begin));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = trim(field.substr(1, field.size() - 2));
    fields.push_back(field);
    begin = i + 1;
  }
  return !quoted;
}

/// What a field says, if it is a number.
std::optional<double> any_number(std::string_view field) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc::invalid_argument || end != field.data() + field.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // nearly 0, or too large
    std::istringstream in{std::string(field)};
    in.imbue(std::locale::classic());
    in >> value;
  }
  return value;
}

bool fits(double value) { return std::isfinite(static_cast<float>(value)); }

/// What a field says, if it is a finite number that fits f32.
std::optional<double> number(std::string_view field) {
  const std::optional<double> value = any_number(field);
  return value && fits(*value) ? value : std::nullopt;
}

/// What is expected in place of a field that is no such number.
std::string_view expected(std::string_view field) {
  const std::optional<double> value = any_number(field);
  return value && std::isfinite(*value) && !fits(*value) ? "a number in the range of f32, at most 3.4e38 from 0"
                                                         : "a finite number";
}

/// A field as a message shows it: quoted, cut short.
std::string shown(std::string_view field) {
  return '"' + std::string(field.substr(0, 24)) + (field.size() > 24 ? "..." : "") + '"';
}

/// What separates two numbers in one of the fields, where no comma does; null where nothing seems to.
const char* separator_in(const std::vector<std::string_view>& fields) {
  constexpr std::array<std::pair<char, const char*>, 4> known{
      {{';', "';'"}, {'|', "'|'"}, {'\t', "tabs"}, {' ', "blanks"}}};
  for (std::string_view field : fields)
    for (const auto& [separator, shown] : known) {
      const size_t at = field.find(separator);
      if (at == field.npos || !number(trim(field.substr(0, at)))) continue;
      const std::string_view rest = trim(field.substr(at + 1));
      if (number(trim(rest.substr(0, rest.find(separator))))) return shown;
    }
  return nullptr;
}

struct Parser {
  const std::string& name;
  Where where;
  CsvOptions options;
  Table table;
  int64_t line_number = 0;

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw FileError(located("csv", join(name, ": line ", line_number, ": ", parts...), where));
  }

  /// Of a row that is none: what separates its fields, where that seems to be no comma, else `parts`.
  template <class... Parts>
  [[noreturn]] void fail_row(const std::vector<std::string_view>& fields, const Parts&... parts) const {
    const char* separator = separator_in(fields);
    if (separator) fail("the fields seem to be separated by ", separator, ", expected commas");
    fail(parts...);
  }

  void add_row(const std::vector<std::string_view>& fields) {
    const int64_t count = static_cast<int64_t>(fields.size());
    if (count != table.columns) fail_row(fields, "found ", count, " columns, expected ", table.columns);
    for (int64_t column = 0; column < count; ++column) {
      const std::string_view field = fields[static_cast<size_t>(column)];
      const std::optional<double> value = column + 1 == options.unread ? 0 : number(field);
      if (!value)
        fail_row(fields, "column ", column + 1, ": found ", field.empty() ? "nothing" : shown(field), ", expected ",
                 column + 1 < count || options.last_column.empty() ? expected(field) : options.last_column);
      table.values.push_back(*value);
    }
    ++table.rows;
  }
};

/// Whether a field is how programs write that there is no value.
bool is_missing(std::string_view field) {
  std::string lower(field);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array spellings{"", "na", "n/a", "nan", "null", "none", "?"};
  return std::ranges::find(spellings, lower) != spellings.end();
}

bool names_columns(const std::vector<std::string_view>& fields, Header header) {
  if (header != Header::detect) return header == Header::present;
  size_t counted = 0;
  while (counted < fields.size() && fields[counted] == std::to_string(counted)) ++counted;
  if (counted == fields.size() && counted > 2) return true;
  return std::ranges::none_of(fields, [](auto field) { return number(field).has_value(); }) &&
         !std::ranges::all_of(fields, is_missing) && !separator_in(fields);
}

}  // namespace

Table parse_csv(std::string_view text, const std::string& name, CsvOptions options, Where where) {
  require<FileError>(!text.starts_with("\xff\xfe") && !text.starts_with("\xfe\xff"), "csv", where, name,
                     ": is text in UTF-16, expected ASCII or UTF-8");
  Parser parser{name, where, options, {.rows = 0, .columns = options.columns, .values = {}, .first_line = 1}};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark some programs write
  std::vector<std::string_view> fields;
  int64_t blank = 0;  // the first blank line of a run; only lines at the end may be blank
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++parser.line_number;
    if (trim(line).empty()) {
      if (blank == 0) blank = parser.line_number;
      continue;
    }
    if (blank != 0) {
      parser.line_number = blank;
      parser.fail("blank line ", blank == 1 ? "before" : "inside", " the table");
    }
    if (line.find('\0') != line.npos) parser.fail("found a NUL byte, expected text");
    if (!split(line, fields)) parser.fail("a quote is never closed");
    if (fields.size() > most_columns) parser.fail("found more than ", most_columns, " columns");
    if (parser.line_number == 1) {
      if (parser.table.columns == 0) parser.table.columns = static_cast<int64_t>(fields.size());
      if (names_columns(fields, options.header)) {
        parser.table.first_line = 2;
        continue;
      }
    }
    parser.add_row(fields);
  }
  require<FileError>(parser.table.rows > 0, "csv", where, name, ": has no row of numbers");
  return std::move(parser.table);
}

Table read_csv(const std::string& path, CsvOptions options, Where where) {
  return parse_csv(read_file(path, maximum_file_bytes, where), path, options, where);
}

}  // namespace cinta::data
