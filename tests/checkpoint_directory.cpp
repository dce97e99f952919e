// Checkpoint directories: whole or absent after any crash, damage found, the newest whole one chosen.
#include "cinta/train/checkpoint_directory.h"

#include <catch2/catch.hpp>

#include "crash.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::train;
using namespace cinta::testing;

namespace {

const std::string weights(size_t{3} << 19, 'w');  // 1.5 MiB: two writes

/// Saves three files that say `version`.
void save(const std::string& directory, int64_t step, const std::string& version) {
  CheckpointWriter writer(directory, step);
  const std::string text = version + weights;
  writer.add("model.safetensors").write(text.data(), text.size());
  writer.add("trainer_state.json").write(version.data(), version.size());
  writer.add("empty");
  const auto path = writer.finish();
  CHECK(path == directory + "/checkpoint-" + std::to_string(step));
}

std::string version_of(const std::string& path) {
  const auto version = read_bytes(path + "/trainer_state.json");
  CHECK(read_bytes(path + "/model.safetensors") == version + weights);
  return version;
}

std::vector<std::string> names_of(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
}

/// A file system that cannot swap two directories.
int no_exchange(std::string_view call, const std::string& path) {
  return call == "exchange" ? EINVAL : make_trouble(call, path);
}

}  // namespace

TEST_CASE("checkpoint: written, found, replaced", "[checkpoint_directory]") {
  const Scratch scratch;
  const auto directory = scratch / "runs/first";
  CHECK_FALSE(newest_checkpoint(directory).newest);
  save(directory, 500, "a");
  save(directory, 1000, "b");
  save(directory, 20, "c");
  auto found = newest_checkpoint(directory);
  REQUIRE(found.newest);
  CHECK(found.newest->path == directory + "/checkpoint-1000");
  CHECK(found.newest->step == 1000);
  CHECK(found.skipped.empty());
  CHECK(version_of(found.newest->path) == "b");
  save(directory, 1000, "d");
  CHECK(version_of(newest_checkpoint(directory).newest->path) == "d");
  CHECK(names_of(directory).size() == 3);
}

TEST_CASE("checkpoint: given up leaves nothing", "[checkpoint_directory]") {
  const Scratch scratch;
  save(scratch.path(), 1, "a");
  {
    CheckpointWriter writer(scratch.path(), 2);
    writer.add("model.safetensors").write("x", 1);
  }
  CHECK(names_of(scratch.path()) == std::vector<std::string>{"checkpoint-1"});
}

TEST_CASE("checkpoint: names of files", "[checkpoint_directory]") {
  const Scratch scratch;
  CheckpointWriter writer(scratch.path(), 1);
  for (const char* name : {"", ".", "..", "a/b", "/etc/passwd"}) CHECK_THROWS_AS(writer.add(name), ValueError);
  writer.add("a");
  CHECK_THROWS_WITH(writer.add("a"), Catch::Contains("the file 'a' is added once"));
  writer.add("manifest.json");
  CHECK_THROWS_AS(writer.finish(), ValueError);  // its own
}

TEST_CASE("checkpoint: damage is found and named, and the one before is taken", "[checkpoint_directory]") {
  const Scratch scratch;
  save(scratch.path(), 1, "a");
  save(scratch.path(), 2, "b");
  const auto newest = scratch / "checkpoint-2";
  REQUIRE(checkpoint_fault(newest).empty());
  const auto skipped = [&](const std::string& fault) {
    INFO(fault);
    CHECK_THAT(checkpoint_fault(newest), Catch::Contains(fault));
    const auto found = newest_checkpoint(scratch.path());
    REQUIRE(found.newest);
    CHECK(found.newest->step == 1);
    REQUIRE(found.skipped.size() == 1);
    CHECK_THAT(found.skipped[0], Catch::StartsWith("checkpoint-2: ") && Catch::Contains(fault));
    CHECK(found.lost == found.skipped[0]);
    std::filesystem::rename(newest, scratch / ".checkpoint-2.old-1");  // a copy that a newer one was to replace
    CHECK(newest_checkpoint(scratch.path()).lost.empty());
    std::filesystem::rename(scratch / ".checkpoint-2.old-1", newest);
  };
  SECTION("one bit") {
    auto bytes = read_bytes(newest + "/model.safetensors");
    bytes[bytes.size() / 2] ^= 1;
    write_bytes(newest + "/model.safetensors", bytes);
    skipped("model.safetensors: found CRC-32 ");
  }
  SECTION("cut") {
    std::filesystem::resize_file(newest + "/model.safetensors", 5);
    skipped("model.safetensors: found 5 bytes, expected " + std::to_string(weights.size() + 1));
  }
  SECTION("file gone") {
    std::filesystem::remove(newest + "/empty");
    skipped("empty: cannot be opened: No such file");
  }
  SECTION("file is a directory") {
    std::filesystem::remove(newest + "/empty");
    std::filesystem::create_directory(newest + "/empty");
    skipped("empty: is no regular file");
  }
  SECTION("manifest gone") {
    std::filesystem::remove(newest + "/manifest.json");
    skipped("has no manifest.json");
  }
  SECTION("manifest of another kind") {
    for (const char* text :
         {"", "{", "[]", "{\"version\":2,\"files\":{}}", "{\"version\":1,\"files\":[]}",
          R"({"version":1,"files":{"a":1}})", R"({"version":1,"files":{"a":{"size":-1,"crc32":""}}})",
          R"({"version":1,"files":{"../checkpoint-1/empty":{"size":0,"crc32":"00000000"}}})"}) {
      write_bytes(newest + "/manifest.json", text);
      skipped("manifest.json is damaged");
    }
  }
  SECTION("manifest cut at any byte") {
    const auto text = read_bytes(newest + "/manifest.json");
    for (size_t length = 0; length + 2 < text.size(); length += 7) {
      write_bytes(newest + "/manifest.json", text.substr(0, length));
      CHECK_FALSE(checkpoint_fault(newest).empty());
    }
  }
}

TEST_CASE("checkpoint: names that only look like one", "[checkpoint_directory]") {
  const Scratch scratch;
  for (const char* name : {"checkpoint-", "checkpoint-x", "checkpoint-5x", "checkpoint--5",
                           "checkpoint-99999999999999999999", "other-5", ".checkpoint-6.old", "best"})
    std::filesystem::create_directory(scratch / name);
  CHECK_FALSE(newest_checkpoint(scratch.path()).newest);
  CHECK(newest_checkpoint(scratch.path()).unfinished.empty());
  std::filesystem::create_directory(scratch / ".checkpoint-7.tmp-1");
  CHECK(newest_checkpoint(scratch.path()).skipped.empty());
  CHECK(newest_checkpoint(scratch.path()).unfinished ==
        std::vector<std::string>{".checkpoint-7.tmp-1: was not written to its end"});
}

TEST_CASE("checkpoint: killed at any call, a whole one is there and the run goes on", "[checkpoint_directory]") {
  const bool can_exchange = GENERATE(true, false);
  const bool same_step = GENERATE(true, false);
  const Scratch scratch;
  const int64_t step = same_step ? 1 : 2;
  save(scratch.path(), 1, "old");
  int n = 0;
  for (bool done = false; !done; ++n) {
    INFO("call " << n << ", exchange " << can_exchange << ", same step " << same_step);
    const int status = killed_at(n, [&] {
      if (!can_exchange) data::set_file_call_hook(no_exchange);
      save(scratch.path(), step, "new");
    });
    done = status == 0;
    if (!done) REQUIRE(status == 128 + SIGKILL);
    const auto found = newest_checkpoint(scratch.path());
    REQUIRE(found.newest);
    const auto version = version_of(found.newest->path);
    CHECK((version == "new" || (!done && version == "old" && found.newest->step == 1)));

    save(scratch.path(), step, "again");
    CHECK(version_of(newest_checkpoint(scratch.path()).newest->path) == "again");
    CHECK(names_of(scratch.path()).size() == (same_step ? 1 : 2));
    if (!same_step) std::filesystem::remove_all(scratch / "checkpoint-2");
    save(scratch.path(), 1, "old");
  }
  CHECK(n > 10);
}

TEST_CASE("checkpoint: any call failing keeps the one before", "[checkpoint_directory]") {
  const Scratch scratch;
  save(scratch.path(), 1, "old");
  for (int n = 0;; ++n) {
    INFO("call " << n);
    std::string message;
    bool happened = false;
    {
      const FailingCall failing(n, EIO);
      try {
        save(scratch.path(), 1, "new");
      } catch (const FileError& error) {
        message = error.what();
      }
      happened = failing.happened();
    }
    const auto found = newest_checkpoint(scratch.path());
    REQUIRE(found.newest);
    const auto version = version_of(found.newest->path);
    if (!happened) {
      CHECK(version == "new");
      break;
    }
    CHECK_THAT(message, Catch::Contains("Input/output error") && Catch::Contains(scratch.path()));
    CHECK((version == "old" || version == "new"));
    // where only syncing the new name failed, the old one is kept beside it
    if (version == "old") CHECK(names_of(scratch.path()) == std::vector<std::string>{"checkpoint-1"});
    save(scratch.path(), 1, "old");
  }
}
