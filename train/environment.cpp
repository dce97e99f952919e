// The list grows by one object with each resumption.
#include "cinta/train/environment.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cinta/data/file.h"
#include "cinta/data/strict_json.h"
#include "cinta/train/loop.h"
#include "cinta/train/machine.h"

namespace cinta::train {
namespace {

std::string now_in_words() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  text[std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now))] = '\0';
  return text;
}

}  // namespace

void EnvironmentFile::on_train_begin(const Moment& now) {
  if (now.options.output_dir.empty()) return;
  const std::string path = now.options.output_dir + "/env.json";
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (now.state.step > 0 && std::filesystem::exists(path)) {
    try {
      const nlohmann::ordered_json known = data::parse_json(data::read_file(path), "resume", path);
      if (known.is_array()) all = known;
    } catch (const FileError& damage) {  // it only tells: the run goes on
      if (!now.options.quiet) std::fprintf(stderr, "%s; begun anew\n", std::string(damage.text()).c_str());
    }
  }
  MetricFields fields{
      {"begun", now_in_words()}, {"after_step", now.state.step}, {"machine", machine_text()}, {"build", build_text()}};
  if (const char* isa = std::getenv("CINTA_ISA")) fields.emplace_back("CINTA_ISA", std::string(isa));
  fields.insert(fields.end(), known_.begin(), known_.end());
  all.push_back(nlohmann::ordered_json::parse(json_of(fields)));
  data::AtomicFile file(path);
  file.write_text(all.dump(2) + "\n");
  file.commit();
}

}  // namespace cinta::train
