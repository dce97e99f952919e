// Each kind of model through the commands: trained, evaluated, asked, planned.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cinta/core/error.h"
#include "command_helpers.h"

using namespace cinta::testing;

TEST_CASE("a perceptron learns any table or IDX files, and eval reads it back", "[command_models]") {
  const Scratch scratch;
  const std::string path = scratch / "points.csv", model = scratch / "model";
  std::string text = "x,y,side\n";  // one line tells the two sides apart, far from zero mean and unit scale
  for (int i = 0; i < 400; ++i) {
    const int x = i * 37 % 101, y = i * 53 % 89;
    text += std::to_string(x) + "," + std::to_string(1000 * y) + "," + (x > y ? "1" : "0") + "\n";
  }
  write_bytes(path, text);
  const Finished trained = run_cinta(mlp(path, model, "600"));
  REQUIRE(trained.code == 0);
  const Finished evaluated = run_cinta({"eval", "--data", path, "--model", model});
  REQUIRE(evaluated.code == 0);
  const size_t at = evaluated.out.find("eval_accuracy ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(evaluated.out.substr(at + 14)) > 0.95);
  write_bytes(path, replaced(text, "37,53000", "37,52000"));
  check_refused(mlp(path, model, "700") + Arguments{"--resume"}, {"data_crc32", "begun with"});
  const Arguments predict_rows{"predict", "--model", model, "--data", scratch / "rows.csv"};
  write_bytes(scratch / "rows.csv", "10,20\n30,5\n");
  const Finished bare = run_cinta(predict_rows);
  CHECK(bare.code == 0);
  CHECK(bare.error.empty());
  write_bytes(scratch / "rows.csv", "10,20,1\n30,5,0\n");
  const Finished labelled = run_cinta(predict_rows);
  CHECK(labelled.out == bare.out);
  CHECK(labelled.error.find("rows.csv: its labels are passed over") != std::string::npos);
  write_bytes(scratch / "rows.csv", "10,20,-1\n30,5,\n");  // nobody knows the class yet
  CHECK(run_cinta(predict_rows).out == bare.out);
  write_bytes(scratch / "rows.csv", "10,20,1\n30,five,1\n");
  check_refused(predict_rows, {"rows.csv: line 2: column 2: found \"five\", expected a finite number"});
  write_bytes(scratch / "rows.csv", "10,20,1,1\n");
  check_refused(predict_rows, {"rows.csv: found 4 columns, expected 2, or one more with the class"});
  write_bytes(path, "1,0\n2,1\n");
  check_refused({"eval", "--data", path, "--model", model},
                {path, "has rows of 1 features, expected 2 as in training"});
  write_bytes(model + "/config.json", replaced(read_bytes(model + "/config.json"), "\"input_mean\"", "\"mean\""));
  check_refused({"eval", "--data", path, "--model", model}, {"config.json", "input_mean"});

  std::string images("\0\0\x08\3\0\0\0\x14\0\0\0\2\0\0\0\2", 16), labels("\0\0\x08\1\0\0\0\x14", 8);
  for (int i = 0; i < 20; ++i) images += std::string(4, static_cast<char>(i)), labels += static_cast<char>(i % 2);
  write_bytes(scratch / "images", images);
  write_bytes(scratch / "labels", labels);
  CHECK(run_cinta(mlp(scratch / "images", scratch / "idx") + Arguments{"--labels", scratch / "labels"}).code == 0);
  const Arguments predict{"predict", "--data", scratch / "images", "--model", scratch / "idx"};
  const Finished whole = run_cinta(predict);
  CHECK(whole.code == 0);
  CHECK(std::count(whole.out.begin(), whole.out.end(), '\n') == 20);
  CHECK(run_cinta(predict + Arguments{"--batch_size", "3"}).out == whole.out);
  write_bytes(scratch / "wide", std::string("\0\0\x08\3\0\0\0\1\0\0\0\1\0\0\0\5", 16) + "pixel");
  check_refused({"predict", "--data", scratch / "wide", "--model", scratch / "idx"},
                {"images have 4 pixels", "1 images with 5"});
  check_refused_early(scratch, train_mlp, scratch / "labels", {"--labels", scratch / "images"},
                      {"labels", "dimension"});
  check_refused_early(scratch, train_mlp, scratch / "images", {}, {"images: looks like IDX images", "--labels"});
  write_bytes(path, "length,kind\n5.1,setosa\n");
  check_refused_early(scratch, train_mlp, path, {},
                      {"line 2: column 2: found \"setosa\", expected the class, a whole number 0, 1, .."});
}

TEST_CASE("a perceptron is tested on rows of their own file", "[command_models]") {
  const Scratch scratch;
  std::string train, test;
  for (int i = 0; i < 90; ++i) (i % 3 ? train : test) += cinta::join(i * 37 % 101, ",", i * 53 % 89, ",", i % 2, "\n");
  write_bytes(scratch / "train.csv", train);
  write_bytes(scratch / "test.csv", test);
  const Arguments command = mlp(scratch / "train.csv", scratch / "run", "20");
  const Finished finished = run_cinta(command + Arguments{"--test_data", scratch / "test.csv", "--hidden", "5,4"});
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  CHECK(finished.out.find("60 to train on, 30 to test") != std::string::npos);
  CHECK(nlohmann::json::parse(read_bytes(scratch / "run/config.json"))["sizes"] == nlohmann::json{2, 32, 5, 4, 2});
  const Finished evaluated = run_cinta({"eval", "--data", scratch / "test.csv", "--model", scratch / "run", "--json"});
  const auto last = nlohmann::json::parse(evaluated.out);
  CHECK(holds(scratch / "run/metrics.jsonl", last["eval_loss"].dump()));

  write_bytes(scratch / "test.csv", test + "1,2,2\n");
  check_refused(command + Arguments{"--resume", "--test_data", scratch / "test.csv"},
                {"test.csv: line 31: column 3: found 2, expected the class, a whole number in [0, 2)"});
  check_refused(command + Arguments{"--resume", "--test_labels", scratch / "test.csv"}, {"goes with --test_data"});
}

TEST_CASE("a perceptron tells apart what f32 does not, and its files keep what that takes", "[command_models]") {
  const Scratch scratch;
  const std::string path = scratch / "times.csv", model = scratch / "model";
  std::string text;
  for (int i = 0; i < 200; ++i) text += i * 37 % 101 < 50 ? "1700000000,0\n" : "1700000010,1\n";
  write_bytes(path, text);
  REQUIRE(run_cinta(mlp(path, model, "200")).code == 0);
  const Finished evaluated = run_cinta({"eval", "--data", path, "--model", model, "--json"});
  CHECK(nlohmann::json::parse(evaluated.out)["eval_accuracy"] == 1);
  write_bytes(scratch / "rows.csv", "1700000010\n1700000000\n");
  const Finished asked = run_cinta({"predict", "--data", scratch / "rows.csv", "--model", model, "--json"});
  CHECK(asked.out.starts_with("{\"class\":1,"));
  CHECK(asked.out.find("\n{\"class\":0,") != std::string::npos);
  const auto config = nlohmann::json::parse(read_bytes(model + "/config.json"));
  CHECK(std::abs(config["input_mean"][0].get<double>() - 1700000005) < 1);
}

TEST_CASE("classes that no row has are told, a table of quantities is refused", "[command_models]") {
  const Scratch scratch;
  const std::string path = scratch / "rows.csv", model = scratch / "model";
  auto told = [&](int times, int plus) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += cinta::join(i, ",", i % 2 * times + plus, "\n");
    write_bytes(path, text);
    Arguments loud = mlp(path, model) + Arguments{"--overwrite"};
    std::erase(loud, "--quiet");
    return run_cinta(loud).error;
  };
  CHECK(told(1, 0).starts_with(path + ": 40 rows of 1 features, 2 classes\n"));
  CHECK(told(3, 1).starts_with(path + ": 40 rows of 1 features, 5 classes (no row is of class 0, 2, 3)\n"));
  CHECK(told(14, 0).find(" 15 classes (no row is of class 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more)\n") !=
        std::string::npos);
  write_bytes(path, "44,1\n");  // of one class: to evaluate with, not to learn from
  CHECK(run_cinta({"eval", "--data", path, "--model", model}).code == 0);
  write_bytes(path, "44,1\n45,1\n46,1\n");
  check_refused_early(scratch, train_mlp, path, {}, {path, "every row is of class 1"});
  write_bytes(path, "44,168782\n122,488098\n");
  check_refused_early(scratch, train_mlp, path, {}, {path, "line 1: column 2: found 168782", "more classes than rows"});
}

TEST_CASE("training, evaluation and prediction take the same line for a header, and say so", "[command_models]") {
  const Scratch scratch;
  const std::string path = scratch / "rows.csv", model = scratch / "model";
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += cinta::join(i, ",", i * 7 % 40, ",", i % 2, "\n");
  write_bytes(path, "0,1,2\n" + rows);
  Arguments loud = mlp(path, model) + Arguments{"--test_data", path};
  std::erase(loud, "--quiet");
  const Finished trained = run_cinta(loud);
  CHECK(trained.code == 0);
  CHECK(trained.error.starts_with(path + ": 40 rows of 2 features, 2 classes\n" + path +
                                  ": line 1 is taken for a header\n" + path + ": line 1 is taken for a header\n"));
  const Finished evaluated = run_cinta({"eval", "--data", path, "--model", model});
  CHECK(evaluated.error == path + ": line 1 is taken for a header\n");
  const Finished predicted = run_cinta({"predict", "--data", path, "--model", model});
  CHECK(predicted.error.starts_with(path + ": line 1 is taken for a header\n"));
  CHECK(std::ranges::count(predicted.out, '\n') == 40);

  write_bytes(path, rows);
  CHECK(run_cinta({"eval", "--data", path, "--model", model}).out == evaluated.out);
  write_bytes(path, "NA,NA,NA\n" + rows);
  for (const Arguments& command : {mlp(path, scratch / "no"), Arguments{"eval", "--data", path, "--model", model},
                                   Arguments{"predict", "--data", path, "--model", model}})
    check_refused(command, {path, "line 1: column 1: found \"NA\", expected a finite number"});
}

TEST_CASE("a character model is evaluated on a text of its characters", "[command_models]") {
  const Scratch scratch;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "abcab";
  write_bytes(scratch / "text", text);
  REQUIRE(run_cinta({"train", "characters", "--data", scratch / "text", "--output_dir", scratch / "run", "--max_steps",
                     "60", "--sequence_length", "16", "--hidden", "16", "--layers", "1", "--heads", "2",
                     "--learning_rate", "0.01"})
              .code == 0);
  const Finished found = run_cinta({"eval", "--data", scratch / "text", "--model", scratch / "run"});
  REQUIRE(found.code == 0);
  REQUIRE(found.out.find("eval_loss ") == 0);
  CHECK(std::stod(found.out.substr(10)) < 1);  // 1.05 without context
  write_bytes(scratch / "other", text + "z");
  check_refused({"eval", "--data", scratch / "other", "--model", scratch / "run"}, {"1500"});
  check_refused({"predict", "--text", "abc", "--model", scratch / "run"}, {"neither an MLP nor a BERT"});
}

TEST_CASE("plan and trace take the directory of every kind of model that is trained", "[command_models]") {
  const Scratch scratch;
  const std::string texts = write_texts(scratch, "texts", "word"), rows = scratch / "rows.csv", run = scratch / "run";
  write_bytes(rows, "text,label\nint a,x\nint b,y\nint c,x\nint d,y\n");
  const Arguments few{"--output_dir", run, "--max_steps", "1", "--threads", "1", "--quiet", "--sequence_length", "16"};
  const Arguments bert = few + Arguments{"--vocab_size", "120"};
  for (const auto& [training, op] : std::vector<std::pair<Arguments, std::string>>{
           {{"mlp", "--data", "generated", "--hidden", "8", "--output_dir", run, "--max_steps", "1", "--quiet"},
            "linear"},
           {Arguments{"characters", "--data", texts + "/0.txt", "--hidden", "16"} + few, "head"},
           {Arguments{"bert", "--data", texts} + bert, "cls.predictions"},
           {Arguments{"bert", "--data", texts, "--next_sentence"} + bert, "cls.seq_relationship"},
           {Arguments{"classify", "--data", rows, "--test_fraction", "0.5"} + bert, "classifier"}}) {
    const Finished trained = run_cinta(Arguments{"train"} + training);
    INFO(training[0] << " " << trained.error);
    REQUIRE(trained.code == 0);
    const Finished planned = run_cinta({"plan", run}), traced = run_cinta({"trace", "--model", run, "--json"});
    INFO(planned.error << traced.error);
    CHECK(planned.code == 0);
    CHECK(planned.out.find("batch of 32: peak memory") != std::string::npos);
    REQUIRE(traced.code == 0);
    CHECK(traced.out.find(op) != std::string::npos);
    const bool masks = training[0] == "bert";
    if (!masks) check_refused({"plan", run, "--masked", "2"}, {"guesses no masked tokens, given 2"});
    if (training[0] == "mlp")
      check_refused({"plan", run, "--gradient_checkpointing", "sqrt"},
                    {"an MLP has no layers to checkpoint, given --gradient_checkpointing sqrt"});
    else
      check_refused({"trace", "--model", run, "--sequence_length", "17"}, {"positions for 16 tokens", "of 17"});
    check_refused({"plan", run, "--vocab_size", "90"}, {"--vocab_size 90 has no effect on", "its own"});
    std::filesystem::remove_all(run);
  }
  check_refused({"trace", "--model", "8,4", "--sequence_length", "17"}, {"--sequence_length 17 has no effect on mlp"});
  check_refused({"trace", "--model", run}, {run + ": there is no such directory"});
  CHECK(run_cinta({"plan", "mini", "--batch_size", "1", "--sequence_length", "8", "--precision",
                   "bf16/wide=bert.encoder.layer.3"})
            .code == 0);
  check_refused({"plan", "784,10", "--precision", "bf16/wide=mlp.layer.0"}, {"an op at or below mlp.layer.0"});
  check_refused({"plan", "99999999999999999999,5"}, {"given '99999999999999999999,5'"});
}

TEST_CASE("a step is planned as it then is", "[command_models]") {
  const Variable one("OMP_NUM_THREADS", "1");  // which of several threads gets a tile is chance
  auto cost = [](Arguments model, const char* device) {
    const Finished finished = run_cinta(Arguments{"plan", "--json", "--device", device} + model);
    INFO(finished.error);
    REQUIRE(finished.code == 0);
    return nlohmann::json::parse(finished.out);
  };
  const Arguments tiny{"tiny", "--batch_size", "4", "--sequence_length", "32", "--vocab_size", "1000"};
  for (const Arguments& model :
       {tiny, tiny + Arguments{"--gradient_checkpointing", "every:1"}, Arguments{"30,40,5", "--optim", "sgd"},
        tiny + Arguments{"--precision", "bf16"}, tiny + Arguments{"--precision", "fp8/delayed,history=4"}}) {
    const nlohmann::json planned = cost(model, "meta"), measured = cost(model, "cpu");
    CHECK(planned["layers"] == measured["layers"]);
    CHECK(planned["peak_bytes_by_category"] == measured["peak_bytes_by_category"]);
    const double wanted = measured["peak_bytes"], found = planned["peak_bytes"];
    CHECK(std::abs(found - wanted) <= 0.002 * wanted + 4096);
  }
  const auto kept = [&](const char* precision) {
    double bytes = 0;
    const nlohmann::json planned = cost(tiny + Arguments{"--precision", precision}, "meta");
    for (const auto& layer : planned["layers"]) bytes += layer["kept_bytes"].get<double>();
    return bytes;
  };
  CHECK(kept("bf16") <= 0.55 * kept("fp32"));
  const nlohmann::json layers = cost({"30,40,5", "--batch_size", "8"}, "meta")["layers"];
  CHECK(layers[0]["parameters"] == 30 * 40 + 40);
  CHECK(layers[0]["forward_flops"] == 2 * 8 * 30 * 40);
  CHECK(layers[0]["backward_flops"] == 2 * 8 * 30 * 40);  // nobody wants the gradient of the rows
  CHECK(layers[1]["backward_flops"] == 2 * 2 * 8 * 40 * 5);
  const Arguments within = tiny + Arguments{"--memory", "64MiB"};
  const nlohmann::json largest = cost(within, "meta");
  CHECK(largest["peak_bytes"] <= 64 << 20);
  const int64_t found = largest["batch_size"];
  const std::string next = std::to_string(found + 1);
  CHECK(cost({"tiny", "--sequence_length", "32", "--vocab_size", "1000", "--batch_size", next}, "meta")["peak_bytes"] >
        64 << 20);
  const int64_t many = cost({"784,10", "--memory", "64MiB"}, "meta")["batch_size"];  // thousands of tiny samples
  CHECK(many > 10000);
  const nlohmann::json most = cost({"3,2", "--memory", "8GiB"}, "meta");
  CHECK(most["batch_size"] == 1 << 20);
  CHECK(most["larger_not_tried"] == true);
  CHECK_FALSE(largest.contains("larger_not_tried"));
  CHECK(run_cinta({"plan", "3,2", "--memory", "8GiB"}).out.find("larger batches were not tried") != std::string::npos);
  check_refused({"plan", "tiny", "--memory", "1MB"}, {"not even a batch of 1 fits 1MB"});
  check_refused({"plan", "huge"}, {"tiny, mini, small, base, large", "directory of a model; given 'huge'"});
  check_refused({"plan", "30,,5"}, {"such as 784,512,10, given '30,,5'"});
}

TEST_CASE("a plan takes no memory for what it plans", "[command_models]") {
  const Finished finished = run_cinta({"plan", "mlp", "--batch_size", "1000000", "--json"});
  REQUIRE(finished.code == 0);
  CHECK(nlohmann::json::parse(finished.out)["peak_bytes"] > int64_t{4} * 784 * 1000000);
  CHECK(finished.peak_bytes < int64_t{1} << 30);
}
