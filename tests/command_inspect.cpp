// `cinta inspect`: the numbers it finds in tensors, the totals, and what it says of two files that differ.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cinta/data/sharded_safetensors.h"
#include "command_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

json printed(const Arguments& arguments) {
  const Finished finished = run_cinta(Arguments{"inspect", "--json"} + arguments);
  INFO(finished.error);
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}

}  // namespace

TEST_CASE("inspect tells what is in each tensor, and in all", "[command]") {
  const Scratch scratch;
  const float some[] = {1, -2, not_a_number, 4, inf, -inf, 9}, all_nan[] = {not_a_number};
  const int32_t whole[] = {7, 7};
  // More than a block of the sweep, far from zero: 1000001 and 1000003 in turns, so the deviation is 1.
  std::vector<double> many(40001);
  for (size_t i = 0; i < many.size(); ++i) many[i] = i + 1 == many.size() ? 1000002 : 1000001 + 2.0 * double(i % 2);
  const std::string path = scratch / "x.safetensors";
  data::save_safetensors(path, {{"some", Dtype::f32, {7}, some},
                                {"all_nan", Dtype::f32, {1, 1}, all_nan},
                                {"whole", Dtype::i32, {2}, whole},
                                {"none", Dtype::bf16, {0, 3}, nullptr},
                                {"many", Dtype::f64, {40001}, many.data()}});
  const json found = printed({path});
  REQUIRE(found["tensors"].size() == 5);
  const json &nan = found["tensors"][0], &far = found["tensors"][1], &none = found["tensors"][2],
             &mixed = found["tensors"][3], &integers = found["tensors"][4];
  CHECK(nan["mean"].is_null());
  CHECK(nan["nan"] == 1);
  CHECK(far["name"] == "many");
  CHECK(far["mean"] == 1000002);
  CHECK(std::abs(far["std"].get<double>() - std::sqrt(40000.0 / 40001)) < 1e-12);
  CHECK(none["shape"] == json::array({0, 3}));
  CHECK(none["max"].is_null());
  CHECK(mixed["mean"] == 3);
  CHECK(mixed["std"] == std::sqrt((4 + 25 + 1 + 36) / 4.0));
  CHECK(mixed["min"] == -2);
  CHECK(mixed["max"] == 9);
  CHECK(mixed["nan"] == 1);
  CHECK(mixed["infinite"] == 2);
  CHECK(mixed["bytes"] == 28);
  CHECK(integers["std"] == 0);
  CHECK(integers["dtype"] == "i32");
  const json& totals = found["totals"];
  CHECK(totals["parameters"] == 40011);
  CHECK(totals["bytes"] == 28 + 4 + 8 + 8 * 40001);
  CHECK(totals["nan"] == 2);
  CHECK(totals["infinite"] == 2);
  CHECK(totals["parameters_of_dtype"] == json{{"bf16", 0}, {"f32", 8}, {"f64", 40001}, {"i32", 2}});
  CHECK(found["metadata"] == json{{"format", "pt"}});

  const std::string table = run_cinta({"inspect", path}).out;
  CHECK_THAT(table,
             Contains("1 NaN  2 infinite\n") && Contains("5 tensors in 1 file, 40011 parameters (bf16 0, f32 8, "));
}

TEST_CASE("inspect --diff names what is on one side, other shapes and types, and the greatest difference",
          "[command]") {
  const Scratch scratch;
  const float left[] = {1, 2, 3, 4}, right[] = {1, 2.5, 2.75, 4};
  const float odd[] = {not_a_number, inf, inf, 1}, odder[] = {not_a_number, inf, -inf, not_a_number};
  const bf16 narrow[] = {bf16(1), bf16(2), bf16(3), bf16(4)};
  const std::string one = scratch / "one.safetensors", other = scratch / "other.safetensors";
  data::save_safetensors(one, {{"gone", Dtype::f32, {1}, left},
                               {"near", Dtype::f32, {4}, left},
                               {"odd", Dtype::f32, {4}, odd},
                               {"shape", Dtype::f32, {2, 2}, left},
                               {"type", Dtype::f32, {4}, left}});
  data::save_safetensors(other, {{"come", Dtype::f32, {1}, left},
                                 {"near", Dtype::f32, {4}, right},
                                 {"odd", Dtype::f32, {4}, odder},
                                 {"shape", Dtype::f32, {4, 1}, left},
                                 {"type", Dtype::bf16, {4}, narrow}});
  const json found = printed({one, "--diff", other});
  CHECK(found["same"] == false);
  CHECK(found["only_here"] == json{"gone"});
  CHECK(found["only_there"] == json{"come"});
  CHECK(found["shapes"] == json::parse(R"([{"name": "shape", "here": [2,2], "there": [4,1]}])"));
  CHECK(found["dtypes"] == json::parse(R"([{"name": "type", "here": "f32", "there": "bf16"}])"));
  CHECK(found["equal"] == 1);
  CHECK(found["values"] == json::parse(R"([{"name": "near", "greatest": 0.5, "not_finite": 0},
                                           {"name": "odd", "greatest": 0.0, "not_finite": 2}])"));
  CHECK(found["greatest"] == 0.5);
  CHECK(printed({one, "--diff", one})["same"] == true);
  const std::string text = run_cinta({"inspect", one, "--diff", other}).out;
  CHECK_THAT(text, Contains("only in " + one + ": gone\n") && Contains("shape: shape: [2,2] and [4,1]") &&
                       Contains("0.5 at most\n") && Contains("2 NaN or infinite"));
}

TEST_CASE("inspect refuses what is no model", "[command]") {
  const Scratch scratch;
  write_bytes(scratch / "x.safetensors", "short");
  for (const auto& [path, part] :
       std::vector<std::pair<std::string, std::string>>{{scratch / "x.safetensors", "x.safetensors: found 5 bytes"},
                                                        {scratch / "none", "none: cannot be opened"},
                                                        {scratch.path(), "model.safetensors: cannot be opened"}}) {
    const Finished finished = run_cinta({"inspect", path});
    CHECK(finished.code == 2);
    CHECK(finished.out.empty());
    CHECK_THAT(finished.error, Contains(part));
  }
}
