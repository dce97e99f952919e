// metrics.jsonl: what is written is JSON and is read back; a resumed file equals an uninterrupted one; damage is named.
#include "cinta/train/metrics.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "crash.h"
#include "scratch.h"

using namespace cinta;
using namespace cinta::train;
using namespace cinta::testing;

namespace {

const MetricFields header = {{"model", std::string("mlp")}, {"seed", int64_t{7}}};

void append_steps(MetricsLog& log, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) {
    log.append(step, {{"loss", 1.0 / double(step)}});
    if (step % 4 == 0) log.append(step, {{"eval_loss", 2.0 / double(step)}});
  }
}

}  // namespace

TEST_CASE("metrics: lines", "[metrics]") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  const double inf = std::numeric_limits<double>::infinity();
  auto log = MetricsLog::create(path, header);
  log.append(1, {{"loss", 0.1f}, {"rate", 0.1}, {"done", true}, {"note", std::string("a \"b\"\n\xff")}});
  log.append(2, {{"loss", std::nanf("")}, {"up", inf}, {"down", -inf}, {"tokens", int64_t{1} << 60}});
  log.append(2, {});
  CHECK(read_bytes(path) ==
        "{\"model\":\"mlp\",\"seed\":7}\n"
        "{\"step\":1,\"loss\":0.1,\"rate\":0.1,\"done\":true,\"note\":\"a \\\"b\\\"\\n\xef\xbf\xbd\"}\n"
        "{\"step\":2,\"loss\":\"NaN\",\"up\":\"Inf\",\"down\":\"-Inf\",\"tokens\":1152921504606846976}\n"
        "{\"step\":2}\n");
  CHECK_THROWS_WITH(log.append(1, {}), Catch::Contains("found step 1 after step 2"));
  CHECK_THROWS_WITH(log.append(3, {{"a", 1.0}, {"a", 1.0}}), Catch::Contains("'a' is given twice"));
  CHECK_THROWS_WITH(log.append(3, {{"step", 1.0}}), Catch::Contains("'step' is given twice"));

  const auto file = read_metrics(path);
  CHECK(file.header == header);
  REQUIRE(file.records.size() == 3);
  CHECK(file.records[0].step == 1);
  const auto loss = file.series("loss");
  CHECK(loss.steps == std::vector<double>{1, 2});
  CHECK(loss.values[0] == 0.1);
  CHECK(std::isnan(loss.values[1]));
  CHECK(file.series("up").values == std::vector<double>{inf});
  CHECK(file.series("down").values == std::vector<double>{-inf});
  CHECK(file.series("tokens").values == std::vector<double>{std::ldexp(1.0, 60)});
  CHECK(file.series("note").values.empty());
  CHECK(file.series("done").values.empty());
}

TEST_CASE("metrics: numbers come back with all their bits", "[metrics]") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  const std::vector<double> values = {0.0,    -0.0,  1.0 / 3, 1e-310,   std::numeric_limits<double>::max(),
                                      5e-324, -2e22, 3,       0.1 + 0.2};
  auto log = MetricsLog::create(path, {});
  for (double value : values) log.append(1, {{"x", value}, {"y", float(value)}});
  const auto file = read_metrics(path);
  CHECK(file.series("x").values == values);
  const auto singles = file.series("y").values;
  for (size_t i = 0; i < values.size(); ++i) CHECK(float(singles[i]) == float(values[i]));
}

TEST_CASE("metrics: a resumed file equals an uninterrupted one", "[metrics]") {
  const Scratch scratch;
  const auto whole = scratch / "whole.jsonl", path = scratch / "metrics.jsonl";
  {
    auto log = MetricsLog::create(whole, header);
    append_steps(log, 1, 30);
  }
  const auto expected = read_bytes(whole);
  for (int64_t checkpoint : {0, 4, 11, 12, 17, 20}) {
    for (const std::string torn : {"", "{", "{\"step\":2", "{\"step\":18,\"loss\":0.05}"}) {
      {
        auto log = MetricsLog::create(path, header);
        append_steps(log, 1, 20);
      }
      write_bytes(path, read_bytes(path) + torn);
      auto log = MetricsLog::resume(path, header, checkpoint);
      append_steps(log, checkpoint + 1, 30);
      INFO("after step " << checkpoint << ", torn line " << torn);
      CHECK(read_bytes(path) == expected);
    }
  }
}

TEST_CASE("metrics: damage is named by file and line", "[metrics]") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  const auto refused = [&](const std::string& text, const std::string& message) {
    write_bytes(path, text);
    INFO(text);
    CHECK_THROWS_WITH(read_metrics(path), Catch::Contains(path) && Catch::Contains(message));
    CHECK_THROWS_AS(MetricsLog::resume(path, {}, 5), FileError);
    CHECK(read_bytes(path) == text);
  };
  refused("", "found no whole line");
  refused("{\"seed\":1}", "found no whole line");
  refused("[]\n", "line 1: found no JSON object");
  refused("{}\n{\"step\":1}\n\n", "line 3: found no JSON object");
  refused("{}\n{\"step\":1,}\n", "line 2: found no JSON object");
  refused("{}\n{\"step\":1,\"a\":NaN}\n", "line 2: found no JSON object");
  refused("{}\n{\"loss\":1}\n", "line 2: found no whole number 'step'");
  refused("{}\n{\"step\":1.5}\n", "line 2: found no whole number 'step'");
  refused("{}\n{\"step\":1,\"a\":[]}\n", "line 2: found a value of type array");
  CHECK_THROWS_AS(MetricsLog::resume(scratch / "absent", {}, 1), FileError);
}

TEST_CASE("metrics: a line that cannot be written is an error", "[metrics]") {
  const Scratch scratch;
  auto log = MetricsLog::create(scratch / "metrics.jsonl", header);
  const FailingCall failing(0, ENOSPC);
  CHECK_THROWS_WITH(log.append(1, {}), Catch::Contains("metrics.jsonl") && Catch::Contains("No space left"));
}
