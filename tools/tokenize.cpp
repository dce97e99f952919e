// `cinta tokenize`: how a vocabulary cuts texts.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/text_options.h"

namespace cinta::tools {

void add_tokenize(CLI::App& app) {
  struct Tokenize {
    std::string model;
    std::vector<std::string> texts;
    TextOptions reading;
    bool as_json = false;
  };
  auto options = std::make_shared<Tokenize>();
  CLI::App* command = app.add_subcommand("tokenize", "how a model's vocabulary cuts texts into tokens");
  command->add_option("text", options->texts, "texts")->required();
  command->add_option("--model", options->model, "directory with vocab.txt or tokenizer.json")->required();
  options->reading.add_to(*command);
  options->reading.add_final_sigma(*command);
  command->add_flag("--json", options->as_json, "an object a line");
  set_work(*command, [options] {
    const data::WordPiece tokenizer = options->reading.load_tokenizer(options->model);
    for (const std::string& text : options->texts) {
      const data::Encoding encoding = tokenizer.encode_framed(options->reading.utf8(text));
      std::vector<std::string> tokens;
      for (int32_t id : encoding.ids) tokens.push_back(tokenizer.vocabulary().token(id));
      if (options->as_json) {
        std::printf("%s\n", nlohmann::ordered_json{{"tokens", tokens}, {"input_ids", encoding.ids}}.dump().c_str());
        continue;
      }
      for (size_t i = 0; i < tokens.size(); ++i) std::printf("%8d  %s\n", encoding.ids[i], tokens[i].c_str());
    }
  });
}

}  // namespace cinta::tools
