// Event files: the bytes that TensorBoard's own library writes, and what a begun and a resumed run leave.
#include "cinta/train/tensorboard.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "scratch.h"

using namespace cinta;
using namespace cinta::train;
using namespace cinta::testing;

namespace {

struct Bytes : data::ByteSink {
  void write(const void* bytes, size_t count) override { text.append(static_cast<const char*>(bytes), count); }
  std::string text;
};

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes)
    for (const int shift : {4, 0}) out += "0123456789abcdef"[static_cast<unsigned char>(c) >> shift & 15];
  return out;
}

/// The events of a file, whose lengths lead exactly to its end.
std::vector<std::string> events_in(const std::string& bytes) {
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    REQUIRE(bytes.size() >= at + 16);
    std::memcpy(&length, bytes.data() + at, sizeof length);
    REQUIRE(bytes.size() >= at + 16 + length);
    out.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  return out;
}

std::vector<std::string> event_files(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

}  // namespace

TEST_CASE("crc32c has its check value", "[tensorboard]") {
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c("") == 0);
}

TEST_CASE("events have the bytes that TensorBoard's own writer gives them", "[tensorboard]") {
  // From tests/interop/tensorboard_events.py --golden.
  Bytes bytes;
  EventWriter writer(bytes, 1.7e9);
  CHECK(hex(bytes.text) == "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d");
  bytes.text.clear();
  writer.start(14, 1.7e9 + 1);
  CHECK(hex(bytes.text) == "0f000000000000006d532b090900004040fc54d941100e3a0208019e42ae0e");
  bytes.text.clear();
  writer.scalars(300, {{"train/loss", 2.5f}, {"train/grad_norm", -0.125f}}, 1.7e9 + 2.5);
  CHECK(hex(bytes.text) ==
        "39000000000000008b0737f1090000a040fc54d94110ac022a2b0a110a0a747261696e2f6c6f737315000020400a160a0f747261696e2f"
        "677261645f6e6f726d15000000bebb4fc471");
}

TEST_CASE("a run that begins has one event file, one resumed goes on in the next", "[tensorboard]") {
  const Scratch scratch;
  write_bytes(scratch / "events.out.tfevents.1600000000.elsewhere.1.0", "of an earlier run");
  {
    TensorBoardLog log(scratch.path(), 0);
    log.append(1, {{"loss", 2.5}, {"note", std::string("x")}, {"done", true}});
    log.append(1, {{"eval_loss", 2.0f}, {"tokens", int64_t{7}}, {"bad", std::nan("")}});
    log.append(2, {});
  }
  REQUIRE(event_files(scratch.path()).size() == 1);
  const std::vector<std::string> begun = events_in(read_bytes(event_files(scratch.path())[0]));
  REQUIRE(begun.size() == 3);
  CHECK(begun[0].find("brain.Event:2") != std::string::npos);
  CHECK(begun[1].find("train/loss") != std::string::npos);
  CHECK(begun[1].find("note") == std::string::npos);
  CHECK(begun[1].find("done") == std::string::npos);
  for (const char* tag : {"eval/loss", "eval/tokens", "eval/bad"}) CHECK(begun[2].find(tag) != std::string::npos);

  TensorBoardLog(scratch.path(), 1).append(2, {{"loss", 1.0}});  // in the same second
  REQUIRE(event_files(scratch.path()).size() == 2);
  const std::vector<std::string> resumed = events_in(read_bytes(event_files(scratch.path())[1]));
  REQUIRE(resumed.size() == 3);
  CHECK(hex(resumed[1].substr(9)) == "10023a020801");  // step 2, session log: started
  CHECK(resumed[2].find("train/loss") != std::string::npos);
  CHECK(events_in(read_bytes(event_files(scratch.path())[0])) == begun);
}
