// A record is: u64 length, u32 checksum of the length, the event, u32 checksum of the event; little-endian. An event is
// a protocol-buffer message of few fields: each is a key (number and wire type) and a value.
#include "cinta/train/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "cinta/data/atomic_directory.h"
#include "cinta/train/checkpoint_names.h"

namespace cinta::train {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

template <class Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t polynomial = 0x82f63b78;  // reflected
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? polynomial : 0);
    table[byte] = rest;
  }
  return table;
}
constexpr std::array<uint32_t, 256> table = make_table();

/// The form in which the checksum of bytes that themselves hold checksums is stored.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

std::string record(std::string_view event) {
  const std::string length = raw(static_cast<uint64_t>(event.size()));
  return length + raw(masked(crc32c(length))) + std::string(event) + raw(masked(crc32c(event)));
}

// Values of a message's fields, by wire type.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string key(int field, int wire_type) { return varint(static_cast<uint64_t>(field << 3 | wire_type)); }
std::string field(int number, int64_t value) { return key(number, 0) + varint(static_cast<uint64_t>(value)); }
std::string field(int number, double value) { return key(number, 1) + raw(value); }
std::string field(int number, std::string_view value) {
  return key(number, 2) + varint(value.size()) + std::string(value);
}
std::string field(int number, float value) { return key(number, 5) + raw(value); }

// The fields of an event: what happened when, and one of three contents.
std::string at(double wall_time) { return field(1, wall_time); }
std::string at(double wall_time, int64_t step) { return at(wall_time) + field(2, step); }
std::string file_version(std::string_view name) { return field(3, name); }
std::string summary(std::string_view values) { return field(5, values); }
std::string session(int64_t status) { return field(7, field(1, status)); }

std::string scalar(std::string_view tag, float value) { return field(1, field(1, tag) + field(2, value)); }

/// events.out.tfevents.<seconds since 1970>.<host>.<process>.0; readers take the files of a directory in the order of
/// their names, so the seconds are more than those of `names`.
std::string next_name(const std::vector<std::string>& names, double wall_time) {
  auto seconds = static_cast<int64_t>(wall_time);
  for (const std::string& name : names) {
    int64_t other = 0;
    std::from_chars(name.data() + events_prefix.size(), name.data() + name.size(), other);
    seconds = std::max(seconds, other + 1);
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == 0) host = {"localhost"};
  return join(events_prefix, seconds, ".", host.data(), ".", ::getpid(), ".0");
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char byte : bytes) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

EventWriter::EventWriter(data::ByteSink& sink, double wall_time) : sink_(sink) {
  const std::string bytes = record(at(wall_time) + file_version("brain.Event:2"));
  sink_.write_text(bytes);
}

void EventWriter::start(int64_t step, double wall_time) {
  constexpr int64_t started = 1;
  const std::string bytes = record(at(wall_time, step) + session(started));
  sink_.write_text(bytes);
}

void EventWriter::scalars(int64_t step, const std::vector<std::pair<std::string, float>>& values, double wall_time) {
  std::string all;
  for (const auto& [tag, value] : values) all += scalar(tag, value);
  const std::string bytes = record(at(wall_time, step) + summary(all));
  sink_.write_text(bytes);
}

TensorBoardLog::TensorBoardLog(const std::string& directory, int64_t step, Where where) {
  std::vector<std::string> names = data::names_in(directory, where);
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(events_prefix); });
  if (step == 0) {
    for (const std::string& name : names) std::filesystem::remove(directory + "/" + name);
    names.clear();
  }
  const double now = seconds_since_1970();
  file_ = std::make_shared<data::OutputFile>(directory + "/" + next_name(names, now), 0, where);
  writer_ = std::make_shared<EventWriter>(*file_, now);
  if (step > 0) writer_->start(step + 1, now);
}

void TensorBoardLog::append(int64_t step, const MetricFields& fields) {
  const bool evaluation =
      std::ranges::any_of(fields, [](const auto& field) { return field.first.starts_with("eval_"); });
  std::vector<std::pair<std::string, float>> values;
  for (const auto& [name, value] : fields) {
    if (std::holds_alternative<bool>(value) || std::holds_alternative<std::string>(value)) continue;
    values.emplace_back((evaluation ? "eval/" : "train/") + name.substr(name.starts_with("eval_") ? 5 : 0),
                        static_cast<float>(number(fields, name)));
  }
  if (!values.empty()) writer_->scalars(step, values, seconds_since_1970());
}

}  // namespace cinta::train
