// Declares the options, loads and reports.
#include "tools/model_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/settings_file.h"

namespace cinta::tools {

CLI::Option* ModelOptions::add_to(CLI::App& command) {
  command.add_flag("--quiet", quiet, "no notes on what was read");
  return command.add_option("--model", directory, "directory with model.safetensors and config.json");
}

void ModelOptions::note(std::string_view line) const {
  if (!quiet) std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

void ModelOptions::note(const models::LoadReport& report) const {
  if (!report.missing.empty() || !report.unused.empty()) note(directory + ": " + report.text());
}

models::LoadReport ModelOptions::load(models::Module& model) const {
  models::LoadReport report = models::load_weights(model, directory);
  note(report);
  model.train(false);
  return report;
}

void refuse_text_options(const CLI::App& command, const std::string& name) {
  for (const char* option : {"on_bad_utf8", "final_sigma"})
    require_effect(command, option, name != "mlp" && name != "CharacterTransformer", "with a model of class " + name);
}

nlohmann::ordered_json json_of(const models::LoadReport& report) {
  return {{"loaded", report.loaded.size()}, {"missing", report.missing}, {"unused", report.unused}};
}

}  // namespace cinta::tools
