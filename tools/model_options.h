// A trained model that a command reads: where it lies, and whether to say what was found there.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cinta/models/model_file.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cinta::tools {

struct ModelOptions {
  std::string directory;
  bool quiet = false;

  /// --model and --quiet; returns the first.
  CLI::Option* add_to(CLI::App& command);
  /// A line on stderr, unless --quiet.
  void note(std::string_view line) const;
  /// What loading from the directory did, as a note that names each tensor that was missing or not used. Where
  /// everything was loaded there is nothing to say.
  void note(const models::LoadReport& report) const;
  /// All of the directory's weights into `model`, which is then ready to predict; a note says what that did. Throws
  /// FileError where one is missing.
  models::LoadReport load(models::Module& model) const;
};

/// Refuses the options of `command` about the reading of texts where the model, a `name`, reads none.
void refuse_text_options(const CLI::App& command, const std::string& name);

/// {"loaded": how many, "missing": [names], "unused": [names]}
nlohmann::ordered_json json_of(const models::LoadReport& report);

}  // namespace cinta::tools
