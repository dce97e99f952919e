// An option that another leaves without effect is refused, and both are named.
#include <catch2/catch.hpp>

#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;

namespace {

Arguments with(const std::string& task, const Arguments& more) {
  return Arguments{"train", task, "--data", "none", "--threads", "1", "--quiet"} + more;
}

}  // namespace

TEST_CASE("training refuses options without effect before it reads data", "[command_unused]") {
  for (const auto& [more, parts] : std::vector<std::pair<Arguments, Parts>>{
           {{"--save_steps", "5", "--save_strategy", "no"}, {"--save_steps 5 has no effect with --save_strategy no"}},
           {{"--save_steps", "5", "--save_strategy", "epoch"}, {"--save_steps 5", "--save_strategy epoch"}},
           {{"--eval_steps", "5", "--eval_strategy", "epoch"}, {"--eval_steps 5", "--eval_strategy epoch"}},
           {{"--save_total_limit", "3", "--save_strategy", "no"}, {"--save_total_limit 3", "--save_strategy no"}},
           {{"--output_dir", "x", "--load_best_model_at_end"},
            {"--load_best_model_at_end has no effect without evaluations on the way"}},
           {{"--output_dir", "x", "--save_strategy", "best"},
            {"--save_strategy best has no effect without evaluations on the way"}},
           {{"--greater_is_better"}, {" --greater_is_better has no effect without evaluations on the way"}},
           {{"--metric_for_best_model", "loss"}, {"_best_model loss has no effect without evaluations on the way"}},
           {{"--resume", "--overwrite"}, {"--resume goes on with a run and --overwrite starts it anew"}},
           {{"--early_stopping", "foo"}, {"--early_stopping is patience=N,min_delta=X, given 'foo'"}},
           {{"--early_stopping", "patience=0", "--eval_steps", "1"}, {"patience"}},
           {{"--device", "nope"}, {"nope"}},
           {{"--gradient_checkpointing", "nope"}, {"nope"}},
           {{"--learning_rate", "-3"}, {"the rate is finite and not negative: -3"}},
           {{"--weight_decay", "-1"}, {"the weight decay is finite and not negative: -1"}},
           {{"--adam_beta1", "7"}, {"betas are in [0, 1): 7"}},
           {{"--adam_epsilon", "0"}, {"eps is positive"}},
           {{"--max_grad_norm", "-1"}, {"--max_grad_norm is not negative, given -1"}},
           {{"--trace_steps", "1:2"}, {"--trace_steps 1:2 has no effect without --trace"}},
           {{"--output_dir", "", "--resume"}, {"--resume has no effect without an --output_dir"}},
           {{"--output_dir", "", "--overwrite"}, {"--overwrite", "--output_dir"}},
           {{"--output_dir", "", "--exponents"}, {"--exponents", "--output_dir"}},
           {{"--output_dir", "", "--report", "html"}, {"--report html", "--output_dir"}},
           {{"--output_dir", "", "--report_to", "tensorboard"}, {"--report_to tensorboard", "--output_dir"}},
           {{"--output_dir", "", "--save_steps", "3"}, {"--save_steps 3", "--output_dir"}},
           {{"--output_dir", "", "--save_strategy", "epoch"}, {"--save_strategy epoch", "--output_dir"}},
           {{"--output_dir", "", "--save_total_limit", "3"}, {"--save_total_limit 3", "--output_dir"}},
           {{"--output_dir", "", "--load_best_model_at_end"}, {"--load_best_model_at_end", "--output_dir"}},
           {{"--num_train_epochs", "0"}, {"--num_train_epochs: more than 0, given 0"}},
           {{"--num_train_epochs", "nan"}, {"--num_train_epochs: more than 0, given nan"}}})
    for (const char* task : {"mlp", "bert"}) {
      check_refused(with(task, more), parts);
      check_refused(Arguments{"config"} + with(task, more), parts);
    }
  check_refused(with("mlp", {"--save_steps", "5", "--save_strategy", "no"}), {"[train mlp] --save_steps 5"});
  for (const char* task : {"bert", "classify"})
    for (const Arguments& config : {Arguments{}, Arguments{"config"}})
      check_refused(config + with(task, {"--balance_lengths"}),
                    {"--balance_lengths has no effect without --padding_free"});
  check_refused(with("bert", {"--balance_lengths", "--padding_free", "--next_sentence"}),
                {"--balance_lengths has no effect with --next_sentence", "lengths are not known beforehand"});
  for (const char* task : {"mlp", "characters"})  // which have no texts of different lengths
    check_refused(with(task, {"--balance_lengths"}), {"--balance_lengths"});
  for (const Arguments& more : {Arguments{"--gradient_checkpointing", "sqrt"}, Arguments{"--test_labels", "x"},
                                Arguments{"--seeds", "2", "--result", "x"}})
    check_refused(Arguments{"config"} + with("mlp", more), {more.front()});
  const Scratch scratch;
  check_refused(with("classify", {"--test_data", "x", "--test_fraction", "0.5"}),
                {"--test_fraction 0.5 has no effect with --test_data"});
  check_refused(with("classify", {"--model", "x", "--size", "mini"}), {"--size mini", "--model"});
  check_refused(with("classify", {"--model", "x", "--vocab_size", "99"}), {"--vocab_size 99", "--model"});
  write_bytes(scratch / "config.json",
              R"({"model_type": "bert", "vocab_size": 99, "hidden_size": 8, "num_attention_heads": 2,
                  "intermediate_size": 8, "num_hidden_layers": 1, "max_position_embeddings": 16})");
  check_refused(with("classify", {"--model", scratch.path(), "--sequence_length", "17"}),
                {"--sequence_length 17 is more than --model", "has positions: 16"});
  const Variable steps("CINTA_SAVE_STEPS", "5");
  check_refused(with("mlp", {"--save_steps", "2", "--save_strategy", "no"}), {"--save_steps 2 has no effect"});
  // What is a default, or says what holds anyway, is no reason to refuse; and what the environment says is general.
  for (const Arguments& more :
       {Arguments{"--save_strategy", "no"}, Arguments{"--eval_strategy", "no", "--eval_steps", "0"},
        Arguments{"--output_dir", "", "--report", "none", "--resume", "False", "--save_strategy", "no"},
        Arguments{"--fast_dev_run", "--save_steps", "7", "--resume", "--output_dir", "x"}})
    CHECK(run_cinta(Arguments{"config"} + with("mlp", more)).error.empty());
  for (const Arguments& more :
       {Arguments{"--padding_free", "--balance_lengths"}, Arguments{"--next_sentence", "--balance_lengths", "False"}})
    CHECK(run_cinta(Arguments{"config"} + with("bert", more)).error.empty());
}

TEST_CASE("searches and evaluations refuse options without effect", "[command_unused]") {
  const Scratch scratch;
  const Arguments tune{"tune", "--space", scratch / "none.json", "--sampler", "random"};
  check_refused(tune + Arguments{"--grid_points", "3"}, {"--grid_points 3 has no effect with --sampler random"});
  check_refused(tune + Arguments{"--pruner_warmup", "3"}, {"--pruner_warmup 3", "--pruner none"});
  check_refused(tune + Arguments{"--storage", "sqlite:///x"}, {"--storage", "--sampler random, with --pruner none"});
  REQUIRE(run_cinta(short_training(scratch / "mlp")).code == 0);
  for (const Arguments& more : {Arguments{"--batch_size", "3"}, Arguments{"--seed", "3"}, Arguments{"--final_sigma"},
                                Arguments{"--on_bad_utf8", "replace"}})
    check_refused(Arguments{"eval", "--data", "generated", "--model", scratch / "mlp"} + more,
                  {more.front(), "has no effect with a model of class mlp"});
  for (const Arguments& more : {Arguments{"--final_sigma"}, Arguments{"--on_bad_utf8", "replace"}})
    check_refused(Arguments{"predict", "--data", "none.csv", "--model", scratch / "mlp"} + more,
                  {more.front(), "has no effect with a model of class mlp"});
  check_refused({"predict", "--input_ids", "ids.safetensors", "--model", scratch / "none", "--final_sigma"},
                {"--final_sigma has no effect with --input_ids"});
  const Variable seed("CINTA_SEED", "3");
  CHECK(run_cinta({"eval", "--data", "generated", "--model", scratch / "mlp"}).code == 0);
  const std::string text = scratch / "text.txt";
  write_bytes(text, std::string(40, 'a') + "bcd\n" + std::string(400, 'b'));
  REQUIRE(run_cinta({"train", "characters", "--data", text, "--max_steps", "1", "--hidden", "8", "--sequence_length",
                     "8", "--threads", "1", "--quiet", "--output_dir", scratch / "characters"})
              .code == 0);
  check_refused({"eval", "--data", text, "--model", scratch / "characters", "--labels", text},
                {"--labels " + text, "a model of class CharacterTransformer"});
}
