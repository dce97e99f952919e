// `cinta bench`: what it says of a step and of the rows, its picture, bad input. No time is judged.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cinta/backends/kernel.h"
#include "cinta/core/random.h"
#include "cinta/models/bert/config.h"
#include "cinta/train/timing.h"
#include "command_helpers.h"
#include "svg.h"

using namespace cinta;
using namespace cinta::testing;
using nlohmann::json;

namespace {

json bench(const Arguments& arguments) {
  const Finished finished = run_cinta(Arguments{"bench"} + arguments + Arguments{"--json", "--threads", "1"});
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}

/// A model of two layers of class `name`, as a config.json.
std::string small_bert(const Scratch& scratch, const char* name = "BertForMaskedLM") {
  models::BertConfig config;
  config.vocab_size = 99;
  config.hidden_size = 32;
  config.num_hidden_layers = config.num_attention_heads = 2;
  config.intermediate_size = 64;
  config.max_position_embeddings = 16;
  const std::string path = scratch / "small.json";
  write_bytes(path, config.to_json(name));
  return path;
}

/// The figures of a row in a stage; fails where there are none.
json row_of(const json& step, const std::string& row, const std::string& stage) {
  for (const json& one : step.at("rows"))
    if (one.at("row") == row && one.at("stage") == stage) return one;
  FAIL(row << " " << stage << " is not in " << step.dump());
  return {};
}

/// What must hold of any step.
void check_step(const json& step, int64_t steps) {
  CHECK(step.at("steps") == steps);
  CHECK(step.at("allocated_bytes") == 0);
  CHECK(step.at("limits").at("gflops") > 0);
  CHECK(step.at("limits").at("gigabytes_a_second") > 0);
  for (const char* name : {"step_ms", "forward_ms", "backward_ms", "update_ms"}) {
    const json& times = step.at(name);
    CHECK(times.at("best") > 0);
    CHECK(times.at("best") <= times.at("median"));
    CHECK(times.at("spread") >= 0);
  }
  CHECK(step.at("step_ms").at("best") >= step.at("backward_ms").at("best"));

  double share = step.at("between_rows").at("share"), time = step.at("between_rows").at("ms"), last = HUGE_VAL;
  CHECK(share > 0);
  for (const json& row : step.at("rows")) {
    INFO(row.dump());
    CHECK(row.at("share") > 0);
    CHECK(row.at("of_limit") > 0);
    CHECK(row.contains("gflops") != row.contains("gigabytes_a_second"));
    CHECK(row.at("ms") <= last);
    last = row.at("ms");
    share += row.at("share").get<double>();
    time += row.at("ms").get<double>();
  }
  CHECK(share == Approx(1));
  CHECK(time == Approx(step.at("watched_step_ms").get<double>()));
  CHECK(step.at("at_limits_ms").get<double>() > 0);
  CHECK(step.at("at_limits_ms").get<double>() <= time);
}

constexpr const char* mlp_layers = "24,16,10";

/// What a row did in a step, in thousand millions of operations or bytes.
double done(const json& row, const char* rate) {
  return 1e-3 * row.at("ms").get<double>() * row.at(rate).get<double>();
}

}  // namespace

TEST_CASE("cinta bench step counts the rows of a BERT's step", "[command_bench]") {
  const Scratch scratch;
  const std::string picture = scratch / "step.svg";
  const json step = bench({"step", "--config", small_bert(scratch), "--batch", "2", "--sequence", "16", "--masked", "3",
                           "--steps", "4", "--plot", picture});
  check_step(step, 4);
  CHECK(step.at("model") == "small.json");
  CHECK(step.at("tokens_a_second").get<double>() ==
        Approx(2 * 16 / (1e-3 * step.at("step_ms").at("median").get<double>())));
  CHECK(row_of(step, "attention", "forward").at("calls") == 2);
  CHECK(row_of(step, "attention_backward", "backward").at("calls") == 2);
  for (const auto& [row, stage] : {std::pair{"embedding_sum", "forward"}, std::pair{"cross_entropy", "forward"},
                                   std::pair{"cross_entropy_backward", "backward"}})
    CHECK(row_of(step, row, stage).at("calls") == 1);

  const std::string svg = read_bytes(picture);
  CHECK(balanced(svg));
  CHECK(svg.find("3 of each masked, dropout 0.1, fp32: ") != svg.npos);
  size_t drawn = 0;
  for (const json& row : step.at("rows")) {
    if (row.at("share") < 0.002) continue;
    ++drawn;
    CHECK(svg.find(">" + row.at("row").get<std::string>() + "</text>") != svg.npos);
  }
  const size_t groups = 4, others = drawn < step.at("rows").size() ? 2 : 1;
  CHECK(all_between(svg, "class=\"bar ", "/>").size() == groups + drawn + others);
}

TEST_CASE("cinta bench step counts the rows of tables that tokens can meet", "[command_bench]") {
  const Scratch scratch;
  const json step = bench(
      {"step", "--config", small_bert(scratch), "--batch=1", "--sequence=8", "--masked=2", "--steps=2", "--warmup=0"});
  const double row = 32 * 4, tokens = 8;  // of 99 words 8, of 16 positions 8, of the 2 types one; the result, the ids
  CHECK(row_of(step, "embedding_sum", "forward").at("bytes") == row * (3 * tokens + 1) + 8 * tokens);
  CHECK(bench({"step", "--config", small_bert(scratch), "--batch=1", "--sequence=8", "--steps=1"}).at("masked") == 8);
}

TEST_CASE("cinta bench step says what dropout a step has and what it does without", "[command_bench]") {
  const Scratch scratch;
  const Arguments small{"--batch=1", "--sequence=8", "--masked=2", "--steps=2", "--warmup=0"};
  const Arguments of_file = Arguments{"step", "--config", small_bert(scratch)} + small;
  CHECK(bench(of_file).at("dropout") == 0.1);
  CHECK(!bench(of_file).contains("without"));
  CHECK(bench(of_file + Arguments{"--dropout", "0"}).at("dropout") == 0);
  const std::string of_attention = scratch / "attention.json";
  write_bytes(of_attention, R"({"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 64, "max_position_embeddings": 16, "hidden_dropout_prob": 0})");  // and no class
  CHECK(bench(Arguments{"step", "--config", of_attention} + small).at("attention_dropout") == 0.1);
  const json named = bench(Arguments{"step", "--model", "bert-tiny"} + small + Arguments{"--without", "attention"});
  CHECK(named.at("dropout") == 0);
  CHECK(named.at("without") == json({"attention"}));
  for (const json& row : named.at("rows")) CHECK(row.at("row") != "attention");
  const Finished told = run_cinta(Arguments{"bench"} + of_file + Arguments{"--without", "attention,linear"});
  CHECK(told.out.find("small.json (BertForMaskedLM), batch of 1 x 8 tokens, 2 of each masked, dropout 0.1, without "
                      "attention and linear, AdamW, fp32") != std::string::npos);
}

TEST_CASE("cinta bench step lays sequences of many lengths end to end", "[command_bench]") {
  const Scratch scratch;
  const Arguments ragged{"--batch=4", "--ragged", "--steps=2", "--config"};
  int64_t tokens = 0;
  double pairs = 0, of_masked = 0, of_first = 0;  // of a query and a key: of all tokens, and of those that a head reads
  for (uint32_t i = 0; i < 4; ++i) {
    const int64_t length = 2 + random_word(0, stream_id("lengths"), 0, i) % 14;
    tokens += length;
    pairs += static_cast<double>(length * length);
    of_masked += static_cast<double>(std::max<int64_t>(1, 3 * length / 16) * length);
    of_first += static_cast<double>(length);
  }
  // The first layer's queries are all tokens, the last one's those that a head reads; two products of queries and keys.
  for (const auto& [name, masked, of_last] :
       {std::tuple{"BertForMaskedLM", "--masked=3", of_masked},
        {"BertForPreTraining", "--masked=3", of_masked + of_first},
        {"BertForSequenceClassification", "--dropout=0", of_first}}) {  // which guesses no masked tokens
    INFO(name);
    const json step = bench(Arguments{"step", "--sequence=16", masked} + ragged + Arguments{small_bert(scratch, name)});
    check_step(step, 2);
    CHECK(step.at("ragged") == true);
    CHECK(step.at("tokens") == tokens);
    CHECK(step.at("tokens_a_second").get<double>() ==
          Approx(static_cast<double>(tokens) / (1e-3 * step.at("step_ms").at("median").get<double>())));
    CHECK(done(row_of(step, "attention", "forward"), "gflops") == Approx(1e-9 * 2 * 2 * 32 * (pairs + of_last)));
  }
  const Finished told =
      run_cinta(Arguments{"bench", "step", "--sequence=3", "--masked=3"} + ragged + Arguments{small_bert(scratch)});
  CHECK(told.out.find("batch of 4 x 2 to 2 tokens, 8 in all, laid end to end, 3 of each 3 masked") !=
        std::string::npos);
  const auto refused = [&](const Arguments& more, const char* architecture, const Parts& parts) {
    check_refused(Arguments{"bench", "step"} + more + ragged + Arguments{small_bert(scratch, architecture)}, parts);
  };
  refused({"--sequence=2"}, "BertForMaskedLM", {"at least 3", "2"});
  refused({"--sequence=8"}, "CharacterTransformer", {"CharacterTransformer", "ragged"});
  check_refused({"bench", "step", "--model=mlp", "--ragged"}, {"--ragged", "BERT"});
}

TEST_CASE("cinta bench step times the class that a file names", "[command_bench]") {
  const Scratch scratch;
  for (const char* name : {"BertForSequenceClassification", "CharacterTransformer"}) {
    const json step = bench({"step", "--config", small_bert(scratch, name), "--batch=2", "--sequence=8", "--steps=2"});
    CHECK(step.at("masked") == 0);
    CHECK(step.at("architecture") == name);
    CHECK(row_of(step, "cross_entropy", "forward").at("calls") == 1);
  }
  check_refused({"bench", "step", "--config", small_bert(scratch, "CharacterTransformer"), "--masked", "2"},
                {"CharacterTransformer", "no masked tokens", "2"});
  check_refused({"bench", "step", "--config", small_bert(scratch, "BertForTokenClassification"), "--sequence=8"},
                {"BertForTokenClassification"});
  const auto refused = [&](const char* config, const Parts& parts) {
    write_bytes(scratch / "other.json", config);
    check_refused({"bench", "step", "--config", scratch / "other.json", "--sequence=8"}, parts);
  };
  refused(R"({"model_type": "mlp", "sizes": [4, 2]})", {"an MLP's", "--layers"});
  refused(R"({"model_type": "bert", "architectures": [5]})", {"other.json", "is no name"});
}

TEST_CASE("cinta bench step knows how much a row has to do", "[command_bench]") {
  const json step = bench({"step", "--model", "mlp", "--layers", mlp_layers, "--batch", "8", "--steps", "3"});
  check_step(step, 3);
  CHECK(step.at("layers") == json({24, 16, 10}));
  CHECK(!step.contains("sequence"));
  CHECK(step.contains("samples_a_second"));
  const double products = 2 * 8 * (24 * 16 + 16 * 10);
  const json forward = row_of(step, "linear", "forward"), backward = row_of(step, "matmul", "backward");
  CHECK(forward.at("calls") == 2);
  CHECK(done(forward, "gflops") == Approx(1e-9 * products));
  CHECK(backward.at("calls") == 2);  // the hidden layer's weight and what it hands on; the batch wants no gradient
  CHECK(done(backward, "gflops") == Approx(1e-9 * products));
  CHECK(done(row_of(step, "linear_weight_backward", "backward"), "gflops") == Approx(1e-9 * 2 * 8 * 16 * 10));
}

TEST_CASE("cinta bench step knows how many bytes an update reads and writes", "[command_bench]") {
  const double weights = 2 * (64 * 64 + 64);  // each ends where the next may begin
  for (const std::string precision : {"fp32", "bf16"}) {
    const json step = bench({"step", "--model=mlp", "--layers=64,64,64", "--steps=2", "--precision", precision});
    const double bytes = row_of(step, "adamw", "update").at("bytes").get<double>();
    // The gradient is read, weights and both moments are read and written, and a shadow is written.
    // So are the four numbers of the step.
    CHECK(bytes == weights * (precision == "bf16" ? 30 : 28) + 4 * 4);
  }
}

TEST_CASE("cinta bench step trains in low precision, without a cast of a weight", "[command_bench]") {
  for (const std::string precision : {"bf16", "fp8"}) {
    const json step = bench({"step", "--model=mlp", "--layers", mlp_layers, "--steps=2", "--precision", precision});
    check_step(step, 2);
    CHECK(step.at("precision") == precision);
    const std::string product = precision == "fp8" ? "scaled_matmul" : "linear";
    CHECK(row_of(step, product, "forward").at("calls") == 2);
    if (precision == "bf16") CHECK(row_of(step, "copy", "forward").at("calls") == 2);  // x, and which labels count
  }
}

TEST_CASE("cinta bench step says the same in words", "[command_bench]") {
  const Finished finished =
      run_cinta({"bench", "step", "--model=mlp", "--layers", mlp_layers, "--threads=1", "--steps=2", "--batch=4"});
  REQUIRE(finished.code == 0);
  for (const char* part : {"mlp 24-16-10, batch of 4", "samples/s", "update", "bytes asked of the machine", "linear",
                           "of limit", "between rows", "100.0 %", "; loss of the last one: "})
    CHECK(finished.out.find(part) != std::string::npos);
}

TEST_CASE("cinta bench rows times every row", "[command_bench]") {
  const Scratch scratch;
  const json rows = bench({"rows", "--sizes", "mini", "--plot", scratch / "rows.svg"});
  const std::string picture = read_bytes(scratch / "rows.svg");
  for (const char* part : {"adamw", "matmul, to inner, dw", "GF/s", "of the machine's limit", "GB/s in 4 MiB"})
    CHECK(picture.find(part) != std::string::npos);
  std::set<std::string> told;
  std::map<std::string, double> bytes;
  for (const json& row : rows.at("rows")) {
    INFO(row.dump());
    told.insert(row.at("row"));
    CHECK(row.at("sizes") == "mini");
    bytes[row.at("row")] = row.at("bytes");
    CHECK((row.at("flops") > 0) == row.contains("gflops"));
    CHECK(row.at("us").at("best") > 0);
    CHECK(row.at("of_limit") > 0);
    CHECK(row.contains("gflops") != row.contains("gigabytes_a_second"));
    const std::string shapes = row.at("shapes");
    CHECK(shapes.starts_with("["));
    // Weights and momenta are read and written, gradients read.
    const double updated = row.at("row") == "adamw" ? 28 : row.at("row") == "sgd" ? 20 : 0;
    if (updated > 0)
      CHECK(1e3 * row.at("gigabytes_a_second").get<double>() * row.at("us").at("median").get<double>() ==
            Approx(updated * std::stod(shapes.substr(1))).epsilon(1e-3));
  }
  for (const KernelRow* row : kernel_table())
    // a recipe for contributors, which only this program has
    if (row->name() != std::string("hardswish") && row->name() != std::string("hardswish_backward"))
      CHECK(told.contains(row->name()));
  CHECK(rows.at("not_timed").empty());
  CHECK(bytes.at("affine_backward") == bytes.at("affine"));  // it has no use for x
  double last = 0;
  for (const json& memory : rows.at("limits").at("memory")) {
    CHECK(memory.at("bytes") > last);
    CHECK(memory.at("gigabytes_a_second") > 0);
    last = memory.at("bytes");
  }
}

TEST_CASE("the spread of times lies between the quartiles, of two as well", "[command_bench]") {
  CHECK(train::Statistics({1, 3}).spread == 0.5);
  CHECK(train::Statistics({5, 1, 2, 3, 4}).spread == Approx(2.0 / 3));
  CHECK(train::Statistics({7}).spread == 0);
}

TEST_CASE("a step or rows that cannot be timed are refused in a line", "[command_bench]") {
  const Scratch scratch;
  const std::string config = small_bert(scratch), no_json = scratch / "no.json";
  write_bytes(no_json, "hidden");
  const auto refused = [](const Arguments& arguments, const Parts& parts) {
    check_refused(Arguments{"bench"} + arguments, parts);
  };
  refused({}, {"bench needs one of the commands step, rows"});
  refused({"stop"}, {"no command is called 'bench stop'; the nearest is 'step', there are step, rows"});
  refused({"step", "--model", "bert-huge"}, {"'huge'", "tiny, mini"});
  refused({"step", "--model", "gpt"}, {"'gpt'"});
  for (const char* option : {"--batch", "--sequence", "--masked", "--steps"})
    refused({"step", option, "0"}, {option, "at least 1"});
  refused({"step", "--batch", "many"}, {"--batch", "many"});
  refused({"step", "--batch", ""}, {"--batch", "a number, given nothing"});
  refused({"step", "--config", config, "--sequence", "17", "--masked", "3"}, {"16", "17"});
  refused({"step", "--config", config, "--sequence", "8", "--masked", "9"}, {"8", "9"});
  refused({"step", "--config", config, "--model", "bert-mini"}, {"--config", "--model"});
  refused({"step", "--config", scratch / "nothing.json"}, {"nothing.json"});
  refused({"step", "--config", no_json}, {"no.json"});
  refused({"step", "--model", "mlp", "--layers", mlp_layers, "--steps", "1", "--precision", "bf16/wide=mlp.layer.1"},
          {"an op at or below mlp.layer.1"});
  refused({"step", "--model", "mlp", "--layers", "784,ten"}, {"--layers", "ten"});
  refused({"step", "--model", "mlp", "--layers", "784"}, {"--layers", "at least 2"});
  for (const char* layers : {"784,,10", ",784,10", "784,10,", ""})
    refused({"step", "--model", "mlp", "--layers", layers}, {"--layers", layers});
  refused({"step", "--model", "mlp", "--layers", "784,0"}, {"at least 1"});
  refused({"step", "--model", "mlp", "--sequence", "8"}, {"--sequence", "BERT"});
  refused({"step", "--layers", "784,10"}, {"--layers", "mlp"});
  refused({"step", "--model", "mlp", "--layers", mlp_layers, "--steps", "1", "--plot", scratch / "no/step.svg"},
          {"no/", "step.svg"});
  refused({"step", "--plot", ""}, {"--plot", "a file"});
  refused({"step", "--config", ""}, {"--config", "the name of a file"});
  refused({"step", "--steps", "99999999999999999999"}, {"--steps", "less than 2^63", "99999999999999999999"});
  for (const char* batch : {"9999999999999", "9223372036854775807"})
    for (const char* model : {"mlp", "bert-tiny"}) {
      const Finished finished = run_cinta({"bench", "step", "--model", model, "--batch", batch});
      INFO(finished.error);
      CHECK(finished.code != 0);
      CHECK(finished.error.find(batch) != std::string::npos);
    }
  refused({"step", "--threads", "-1"}, {"--threads"});
  refused({"step", "--sequnce", "8"}, {"--sequence"});
  refused({"rows", "--sizes", "huge"}, {"--sizes", "mini, base, large", "huge"});
}
