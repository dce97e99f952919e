// Tables of numbers from comma-separated text, plain or gzip.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cinta/core/error.h"

namespace cinta::data {

/// Numbers in rows of equal length, row after row.
struct Table {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;
  int64_t first_line = 1;  ///< of the file, that row 0 stands in; rows are consecutive lines

  bool has_header() const { return first_line > 1; }
};

/// Whether the first line names the columns. `detect`: it does when none of its fields is a number, unless all are
/// missing values (NA, NaN, null, ?, nothing), and when they are 0, 1, 2 and so on, as pandas names columns that have
/// no name. 0 and 1 alone are a row: of a feature and its class, rather.
enum class Header { detect, present, absent };

struct CsvOptions {
  Header header = Header::detect;
  int64_t columns = 0;  ///< the number every row must have; 0: as many as the first row
  int64_t unread = 0;   ///< the column, counted from 1, whose fields may be anything and become 0; 0: none
  std::string_view last_column = {};  ///< what a message says is expected there; empty: what it says of all others
};

/// Reads a table. Lines end in LF or CRLF, the last one may lack its end, blank lines may stand at the end only; fields
/// may be quoted; every value must be a finite number that fits f32.
/// Throws FileError naming file, line and column: ragged row, wrong column count, text or nothing where a number should
/// be, fields that something else than commas seems to separate, blank line before or between rows, bytes that are no
/// text in ASCII or UTF-8, no row at all.
Table read_csv(const std::string& path, CsvOptions options = {}, Where where = Where::current());

/// The same from memory; `name` stands for the file in messages.
Table parse_csv(std::string_view text, const std::string& name, CsvOptions options = {},
                Where where = Where::current());

}  // namespace cinta::data
