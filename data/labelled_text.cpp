// One reader per format gives rows of fields; what the columns are is decided once, for all formats.
#include "cinta/data/labelled_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/data/text_columns.h"
#include "cinta/data/unicode.h"

namespace cinta::data {
namespace {

struct Row {
  int64_t line;  ///< where it begins
  std::vector<std::string> fields;
};

struct Source {
  const std::string& name;
  Where where;

  template <class... Parts>
  [[noreturn]] void fail(int64_t line, const Parts&... parts) const {
    throw FileError(located("labelled_text", join(name, ": line ", line, ": ", parts...), where));
  }
};

/// Fields between `separator`; where `quoted`, a field in quotes may hold separators, line ends and doubled quotes, and
/// blanks before the first quote are passed over.
std::vector<Row> read_table(std::string_view text, char separator, bool quoted, const Source& source) {
  std::vector<Row> rows;
  int64_t line = 1;
  for (size_t at = 0; at < text.size();) {
    Row row{line, {}};
    for (bool more = true; more;) {
      std::string field;
      const size_t begin = std::min(text.find_first_not_of(' ', at), text.size());
      if (quoted && begin < text.size() && text[begin] == '"') {
        for (at = begin + 1;; ++at) {
          if (at == text.size()) source.fail(row.line, "a quote is never closed");
          if (text[at] == '\n') ++line;
          if (text[at] != '"')
            field += text[at];
          else if (at + 1 < text.size() && text[at + 1] == '"')
            field += text[at++];
          else
            break;
        }
        ++at;
        if (at < text.size() && text[at] == '\r') ++at;
        if (at < text.size() && text[at] != separator && text[at] != '\n')
          source.fail(line, "column ", row.fields.size() + 1, ": text after the closing quote");
      } else {
        const size_t end = std::min(text.find_first_of(std::string{separator, '\n'}, at), text.size());
        field = text.substr(at, end - at);
        at = end;
        if (field.ends_with('\r') && (at == text.size() || text[at] == '\n')) field.pop_back();
      }
      row.fields.push_back(std::move(field));
      more = at < text.size() && text[at] == separator;
      ++at;
    }
    ++line;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// A value as a message shows it: cut short.
std::string shown(const nlohmann::json& value) {
  constexpr size_t most = 40;
  const std::string text = value.dump(-1, ' ', true);
  return text.size() > most ? text.substr(0, most) + ".." : text;
}

/// The same of a text, as one line.
std::string quoted(std::string text) {
  size_t most = 40;
  if (text.size() > most) {
    while ((static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;  // inside a character
    text = text.substr(0, most) + "..";
  }
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  return "'" + text + "'";
}

std::vector<std::string> quoted(std::vector<std::string> texts) {
  for (std::string& text : texts) text = quoted(std::move(text));
  return texts;
}

/// Nothing where all is read.
std::string note_of(const std::string& read, const std::vector<std::string>& unread) {
  return unread.empty() ? "" : read + "; not read: " + first_few(quoted(unread));
}

void require_fields_utf8(const Row& row, const Source& source) {
  for (const std::string& text : row.fields) require_utf8(text, join(source.name, ": line ", row.line), source.where);
}

void add(LabelledText& out, const Row& row, const TextColumns& columns, const Source& source) {
  auto field = [&](int column) { return row.fields[static_cast<size_t>(column)]; };
  require_fields_utf8(row, source);
  out.lines.push_back(row.line);
  out.first.push_back(field(columns.first));
  if (columns.second >= 0) out.second.push_back(field(columns.second));
  if (columns.label < 0) return;
  if (field(columns.label).empty()) source.fail(row.line, "column ", columns.label + 1, ": the label is empty");
  out.labels.push_back(field(columns.label));
}

LabelledText from_table(std::vector<Row> rows, const Source& source) {
  LabelledText out;
  auto blank = [](const Row& row) { return row.fields.size() == 1 && row.fields[0].empty(); };
  const auto first = std::ranges::find_if_not(rows, blank);
  if (first == rows.end()) return out;
  const size_t width = first->fields.size();
  TextColumns columns = columns_by_name(first->fields);
  const bool header = columns.first >= 0 || columns.label >= 0;
  if (header) {
    require_fields_utf8(*first, source);
    if (columns.first < 0) source.fail(first->line, "no column is called ", known_text_names());
    out.note = note_of(read_columns(columns, first->fields), unread_columns(columns, first->fields));
  } else {
    if (width > 3)
      source.fail(first->line, "found ", width, " columns without names, expected text[, pair][, label], or names (",
                  known_column_names(), ")");
    columns = {0, width == 3 ? 1 : -1, width == 1 ? -1 : static_cast<int>(width) - 1};
    out.guessed_column = columns.label + 1;
    out.note = join("no header: text", width == 3 ? ", second text" : "", width == 1 ? "" : ", label");
  }
  for (auto row = header ? first + 1 : rows.begin(); row != rows.end(); ++row) {
    if (width > 1 && blank(*row)) continue;  // of one column a blank line is a text, as among plain lines
    if (row->fields.size() != width) source.fail(row->line, "found ", row->fields.size(), " columns, expected ", width);
    add(out, *row, columns, source);
  }
  return out;
}

LabelledText from_json_lines(std::string_view text, const Source& source) {
  LabelledText out;
  std::string first_read;
  std::set<std::string> unread;
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (one.find_first_not_of(" \t\r") == one.npos) continue;
    const auto json = parse_json_object(one, "labelled_text", join(source.name, ": line ", line), source.where);
    std::vector<std::string> names;
    for (const auto& [key, value] : json.items()) names.push_back(key);
    TextColumns columns = columns_by_name(names);
    for (int* column : {&columns.second, &columns.label})
      if (*column >= 0 && json[names[static_cast<size_t>(*column)]].is_null()) *column = -1;
    if (columns.first < 0) source.fail(line, "no key is called ", known_text_names());
    Row row{line, {}};
    for (const auto& [key, value] : json.items()) {
      const int at = static_cast<int>(row.fields.size());
      const bool wanted = at == columns.first || at == columns.second || at == columns.label;
      const bool readable =
          value.is_string() || value.is_number_integer() || (at == columns.label && value.is_boolean());
      if (wanted && !readable)
        source.fail(line, "'", key, "' is ", shown(value), ", expected a text or a whole number");
      if (!wanted && !value.is_null()) unread.insert(key);
      row.fields.push_back(value.is_string() ? value.get<std::string>() : wanted ? value.dump() : "");
    }
    const std::string read = read_columns(columns, names);
    if (out.first.empty()) first_read = read;
    if (read != first_read) source.fail(line, "has ", read, "; the lines before have ", first_read);
    add(out, row, columns, source);
  }
  out.note = note_of(first_read, {unread.begin(), unread.end()});
  return out;
}

LabelledText from_lines(std::string_view text, const Source& source) {
  LabelledText out;
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    Row row{++line, {std::string(text.substr(at, end - at))}};
    if (row.fields[0].ends_with('\r')) row.fields[0].pop_back();
    add(out, row, {.first = 0}, source);
    at = end + 1;
  }
  return out;
}

/// The ending of a name that tells how its columns are written, in small letters; empty for one of plain lines.
std::string_view format_of(std::string path) {
  for (char& letter : path) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  for (const std::string_view ending : {".csv", ".tsv", ".jsonl"})
    if (path.ends_with(ending)) return ending;
  return {};
}

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

LabelledText read_texts(const std::string& path, BadUtf8 on_bad, const std::vector<std::string>& classes, Where where) {
  const Source source{path, where};
  const std::string_view ending = format_of(path);
  std::string text = read_file(path, maximum_file_bytes, where);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (on_bad == BadUtf8::replace) text = utf8_text(std::move(text), on_bad, path, where);  // else told by line
  LabelledText out = ending == ".jsonl" ? from_json_lines(text, source)
                     : ending == ".csv" ? from_table(read_table(text, ',', true, source), source)
                     : ending == ".tsv" ? from_table(read_table(text, '\t', false, source), source)
                                        : from_lines(text, source);
  require<FileError>(out.count() > 0, "labelled_text", where, path, ": has no sample");
  if (out.guessed_column == 0 || classes.empty()) return out;
  const std::set<std::string> known(classes.begin(), classes.end());
  for (size_t i = 0; i < out.count(); ++i)
    if (!known.contains(out.labels[i]))
      source.fail(out.lines[i], "column ", out.guessed_column, " holds no class of the model (", quoted(out.labels[i]),
                  "); name the columns in the first line (", known_column_names(),
                  "), or quote a text that has the separator in it");
  return out;
}

LabelledText read_labelled_text(const std::string& path, BadUtf8 on_bad, const std::vector<std::string>& classes,
                                Where where) {
  require<FileError>(!format_of(path).empty(), "labelled_text", where, path, ": its name ends in .csv, .tsv or .jsonl");
  LabelledText out = read_texts(path, on_bad, classes, where);
  require<FileError>(!out.labels.empty(), "labelled_text", where, path, ": has no column of labels, which is called ",
                     known_label_names(), out.note.empty() ? "" : "; found " + out.note);
  if (out.guessed_column > 0 && classes.empty() && std::ranges::count(out.labels, out.labels[0]) == 1)
    Source{path, where}.fail(out.lines[0], quoted(out.first[0]), out.second.empty() ? "" : ", " + quoted(out.second[0]),
                             ", ", quoted(out.labels[0]),
                             " is no header that is known, and no other line has the last of these as its label; ",
                             "name the columns in the first line (", known_column_names(), ")");
  return out;
}

std::vector<std::string> label_names(const std::vector<std::string>& labels) {
  const std::set<std::string> distinct(labels.begin(), labels.end());
  std::vector<std::string> names(distinct.begin(), distinct.end());
  if (std::ranges::all_of(names, [](const std::string& name) { return whole_number(name).has_value(); }))
    std::ranges::sort(names, {}, [](const std::string& name) { return *whole_number(name); });
  return names;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr size_t most = 10;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) out += (i > 0 ? ", " : "") + names[i];
  return names.size() > most ? out + ", .." : out;
}

Encoding encode_sample(const LabelledText& text, size_t i, const WordPiece& tokenizer, int64_t length, Where where) {
  return text.second.empty() ? tokenizer.encode_framed(text.first[i], length, where)
                             : tokenizer.encode_pair(text.first[i], text.second[i], length, where);
}

ClassifiedSequences encode(const LabelledText& text, const WordPiece& tokenizer, const std::vector<std::string>& names,
                           int64_t length, const std::string& name, Where where) {
  const bool pairs = !text.second.empty();
  require(length >= 3, "encode", where, "a sequence needs [CLS], a token and [SEP], given length ", length);
  require(!pairs || length >= 5, "encode", where,
          "a pair needs [CLS] and a token and [SEP] of each text, a length of at least 5, given ", length);
  ClassifiedSequences out;
  SequenceArrays arrays;
  const int32_t padding = tokenizer.vocabulary().id("[PAD]", where);
  for (size_t i = 0; i < text.count(); ++i) {
    Encoding encoding = encode_sample(text, i, tokenizer, length, where);
    arrays.lengths.push_back(static_cast<int32_t>(encoding.ids.size()));
    encoding.ids.resize(static_cast<size_t>(length), padding);
    encoding.types.resize(static_cast<size_t>(length), 0);
    arrays.ids.insert(arrays.ids.end(), encoding.ids.begin(), encoding.ids.end());
    if (pairs) out.types.insert(out.types.end(), encoding.types.begin(), encoding.types.end());
    if (text.labels.empty()) continue;
    const auto found = std::ranges::find(names, text.labels[i]);
    if (found == names.end()) {
      const std::string place = text.lines.empty() ? join("sample ", i + 1) : join("line ", text.lines[i]);
      throw ValueError(located("encode",
                               join(name, ": ", place, " has the label '", text.labels[i],
                                    "', which is none of the model's ", names.size(), ": ", first_few(names)),
                               where));
    }
    out.labels.push_back(found - names.begin());
  }
  out.sequences = sequences_of(length, std::move(arrays));
  return out;
}

LabelledText select(const LabelledText& text, std::span<const int64_t> rows) {
  LabelledText out;
  for (int64_t row : rows) {
    const size_t i = static_cast<size_t>(row);
    out.first.push_back(text.first[i]);
    if (!text.second.empty()) out.second.push_back(text.second[i]);
    if (!text.labels.empty()) out.labels.push_back(text.labels[i]);
    if (!text.lines.empty()) out.lines.push_back(text.lines[i]);
  }
  return out;
}

ClassifiedBatches::ClassifiedBatches(const ClassifiedSequences& sequences, int64_t batch_size, uint64_t seed,
                                     Where where, Balance balance)
    : sequences_(sequences),
      order_(sequences.sequences.count, batch_size, seed, where,
             balance == Balance::tokens ? sequences.sequences.lengths : std::span<const int32_t>()) {}

Batch ClassifiedBatches::gather(std::span<const int64_t> samples) const {
  const Sequences& all = sequences_.sequences;
  Batch out;
  for (int64_t sample : samples) {
    const auto at = static_cast<size_t>(sample);
    const auto begin = sample * all.length;
    out.ids.insert(out.ids.end(), all.ids.begin() + begin, all.ids.begin() + begin + all.length);
    if (!sequences_.types.empty())
      out.types.insert(out.types.end(), sequences_.types.begin() + begin,
                       sequences_.types.begin() + begin + all.length);
    out.lengths.push_back(all.lengths[at]);
    if (!sequences_.labels.empty()) out.labels.push_back(sequences_.labels[at]);
  }
  out.items = static_cast<int64_t>(out.labels.size());
  return out;
}

Batch ClassifiedBatches::batch(int64_t step) const {
  std::vector<int64_t> samples;
  for (const Draw& draw : order_.draws(step)) samples.push_back(draw.sample);
  Batch out = gather(samples);
  out.step = step;
  return out;
}

Batch ClassifiedBatches::slice(int64_t begin, int64_t end) const {
  std::vector<int64_t> samples(static_cast<size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  return gather(samples);
}

}  // namespace cinta::data
