// Writing and reading metrics.jsonl.
#include "cinta/train/metrics.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "cinta/data/file.h"

namespace cinta::train {
namespace {

using Json = nlohmann::ordered_json;

template <class Number>
std::string spelled(Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(value)) return "\"NaN\"";
    if (std::isinf(value)) return value > 0 ? "\"Inf\"" : "\"-Inf\"";
  }
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string spelled(bool value) { return value ? "true" : "false"; }
std::string spelled(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string spelled(const MetricFields& fields, const std::string& name) {
  for (const auto& [field, value] : fields)
    if (field == name) return std::visit([](const auto& plain) { return spelled(plain); }, value);
  return "nothing";
}

/// "seed 1, begun with 0" for each field that differs.
std::string differences(const MetricFields& now, const MetricFields& begun) {
  std::set<std::string> names;
  for (const MetricFields& fields : {now, begun})
    for (const auto& [name, value] : fields) names.insert(name);
  std::string out;
  for (const std::string& name : names) {
    const std::string here = spelled(now, name), there = spelled(begun, name);
    if (here != there) out += join(out.empty() ? "" : "; ", name, " ", here, ", begun with ", there);
  }
  return out;
}

/// `{"step":1,"loss":2.5}` and a line end, as one string, so that one write puts it into the file.
std::string line_of(const MetricFields& fields, Where where) { return json_of(fields, where) + "\n"; }

MetricValue value_of(const Json& json, std::string_view place, Where where) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() >> 63 != 0) return json.get<uint64_t>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  require<FileError>(json.is_string(), "metrics", where, place, "found a value of type ", json.type_name(),
                     ", expected a number, a string, true or false");
  return json.get<std::string>();
}

/// Calls `take(fields, begin)` for each whole line, with the place where it begins, until that returns false.
template <class Take>
void for_each_line(const std::string& path, const std::string& text, Where where, Take&& take) {
  size_t number = 1;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1, ++number) {
    const std::string place = join(path, ": line ", number, ": ");
    const auto json = Json::parse(text.begin() + long(begin), text.begin() + long(end), nullptr, false);
    require<FileError>(json.is_object(), "metrics", where, place, "found no JSON object, expected one on each line");
    MetricFields fields;
    for (const auto& [name, value] : json.items()) fields.emplace_back(name, value_of(value, place, where));
    if (number > 1) {
      const bool has_step = !fields.empty() && fields[0].first == "step" && fields[0].second.index() == 1;
      require<FileError>(has_step, "metrics", where, place, "found no whole number 'step' in front");
    }
    if (!take(std::move(fields), begin)) return;
  }
  require<FileError>(number > 1, "metrics", where, path, ": found no whole line, expected the header of a run");
}

int64_t step_of(const MetricFields& fields) { return std::get<int64_t>(fields[0].second); }

/// The line begins with a number of an evaluation, behind its step.
bool is_evaluation(const MetricFields& fields) { return fields.size() > 1 && fields[1].first.starts_with("eval_"); }

std::optional<double> number_in(const MetricValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (*text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (*text == "Inf") return std::numeric_limits<double>::infinity();
    if (*text == "-Inf") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  if (std::holds_alternative<bool>(value)) return std::nullopt;
  if (const auto* whole = std::get_if<int64_t>(&value)) return double(*whole);
  if (const auto* large = std::get_if<uint64_t>(&value)) return double(*large);
  if (const auto* single = std::get_if<float>(&value)) return double(*single);
  return std::get<double>(value);
}

}  // namespace

double number(const MetricFields& fields, std::string_view name) {
  for (const auto& [field, value] : fields)
    if (field == name) return number_in(value).value_or(std::numeric_limits<double>::quiet_NaN());
  return std::numeric_limits<double>::quiet_NaN();
}

std::string json_of(const MetricFields& fields, Where where) {
  std::string line;
  std::set<std::string_view> names;
  for (const auto& [name, value] : fields) {
    require(names.insert(name).second, "metrics", where, "the field '", name, "' is given twice");
    line += (line.empty() ? "{" : ",") + spelled(name) + ":";
    line += std::visit([](const auto& plain) { return spelled(plain); }, value);
  }
  return (line.empty() ? "{" : line) + "}";
}

void require_header(const std::string& path, const MetricFields& header, Where where) {
  for_each_line(path, data::read_file(path, data::maximum_file_bytes, where), where,
                [&](const MetricFields& fields, size_t) {
                  const std::string changed = differences(header, fields);
                  require(changed.empty(), "resume", where, path, " is of a run with other options: ", changed);
                  return false;
                });
}

MetricsLog MetricsLog::create(const std::string& path, const MetricFields& header, Where where) {
  const std::string line = line_of(header, where);
  auto file = std::make_shared<data::OutputFile>(path, 0, where);
  file->write_text(line);
  return {std::move(file), 0};
}

MetricsLog MetricsLog::resume(const std::string& path, const MetricFields& header, int64_t step, bool evaluation_due,
                              Where where) {
  require_header(path, header, where);
  const std::string text = data::read_file(path, data::maximum_file_bytes, where);
  size_t keep = text.rfind('\n') + 1;  // a line that was not written to its end goes
  bool in_header = true;
  for_each_line(path, text, where, [&](const MetricFields& fields, size_t begin) {
    if (std::exchange(in_header, false)) return true;
    if (step_of(fields) > step || (evaluation_due && step_of(fields) == step && is_evaluation(fields))) {
      keep = begin;
      return false;
    }
    return true;
  });
  return {std::make_shared<data::OutputFile>(path, keep, where), step};
}

void MetricsLog::append(int64_t step, const MetricFields& fields, Where where) {
  require(step >= last_step_, "metrics", where, "found step ", step, " after step ", last_step_);
  MetricFields all = {{"step", step}};
  all.insert(all.end(), fields.begin(), fields.end());
  const std::string line = line_of(all, where);
  file_->write_text(line);
  last_step_ = step;
}

MetricSeries MetricsFile::series(std::string_view name) const {
  MetricSeries series;
  for (const auto& [step, fields] : records)
    for (const auto& [field, value] : fields)
      if (const auto number = number_in(value); field == name && number) {
        series.steps.push_back(double(step));
        series.values.push_back(*number);
      }
  return series;
}

bool has_steps(const std::string& path, Where where) {
  if (!std::filesystem::exists(path)) return false;
  const std::string text = data::read_file(path, data::maximum_file_bytes, where);
  const size_t end = text.find('\n');
  return end != text.npos && end + 1 < text.size();
}

MetricsFile read_metrics(const std::string& path, Where where) {
  MetricsFile file;
  bool in_header = true;
  for_each_line(path, data::read_file(path, data::maximum_file_bytes, where), where, [&](MetricFields fields, size_t) {
    if (std::exchange(in_header, false)) {
      file.header = std::move(fields);
    } else {
      const int64_t step = step_of(fields);
      fields.erase(fields.begin());
      file.records.push_back({step, std::move(fields)});
    }
    return true;
  });
  return file;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace cinta::train
