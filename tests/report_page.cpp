// report.html: what it says of a run, that it keeps up with the run and survives its end, that text in it is text, and
// that a run with it is the run without it.
#include "cinta/train/report_page.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

#include "cinta/autograd/mode.h"
#include "cinta/data/atomic_file.h"
#include "cinta/train/exponents.h"
#include "cinta/train/reports.h"
#include "markup.h"
#include "svg.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using train::MetricFields;
using train::Moment;
using train::ReportPage;
using train::RunOptions;

namespace {

const MetricFields header{{"task", std::string("bert")}, {"data", std::string("<script>alert(1)</script> & \"\xff\"")}};

/// A page that is written whenever something is new.
std::shared_ptr<ReportPage> eager() {
  return std::make_shared<ReportPage>(
      ReportPage::Options{.command = "cinta train '<b>'", .seconds_between = 0, .greatest_share = 1e9});
}

RunOptions reported(const std::string& directory) {
  RunOptions options = small_run(directory);
  options.callbacks = {eager()};
  return options;
}

std::string page_in(const std::string& directory) {
  std::string page = read_bytes(directory + "/report.html");
  CHECK(fault_of(page) == "");
  return page;
}

std::string state_of(const std::string& page) { return all_between(page, "data-state=\"", "\"").at(0); }

/// Name and path of each curve.
std::vector<std::string> curves(const std::string& page) { return all_between(page, "data-name=", "/>"); }

int64_t count(const std::string& text, const std::string& part) {
  return static_cast<int64_t>(all_between(text, part, "").size());
}

template <class Event>
struct OnLog : train::TrainerCallback {
  explicit OnLog(Event event) : event(event) {}
  void on_log(const Moment& now, const MetricFields&) override { event(now); }
  Event event;
};

int64_t pages_written = 0;
int count_pages(std::string_view call, const std::string& path) {
  pages_written += call == "rename" && path.ends_with("report.html");
  return 0;
}

}  // namespace

TEST_CASE("the page shows a run and one of its steps", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  auto task = small_masked();
  const train::RunResult result = train::run(task, reported(scratch / "run"), header);
  const std::string page = page_in(scratch / "run");
  CHECK(state_of(page) == "finished");
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return std::string(text);
  };
  CHECK_THAT(page, Catch::Contains(">" + number(result.loss) + "<"));
  CHECK_THAT(page, Catch::Contains(">" + number(train::number(result.evaluation, "eval_loss")) + "<"));
  for (const char* part :
       {"30<small> of 30", "Masked accuracy", "Learning rate", "Gradient norm", "tokens per second", "Evaluations (5)",
        "Step 3", "Time by op", "Time by module", "Memory at the peak", "Kept for backward", "The tape", "optimizer",
        "self_attention", "cross_entropy", "bert.encoder.layer.1", "cinta train '&lt;b&gt;'"})
    CHECK_THAT(page, Catch::Contains(part));
  for (const char* name : {"\"loss\"", "\"eval_loss\"", "\"learning_rate\"", "\"grad_norm\"", "\"tokens per second\""})
    CHECK(count(page, "data-name=" + std::string(name)) == 1);
  // text is text
  CHECK_THAT(page, Catch::Contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;\xEF\xBF\xBD&quot;"));
  CHECK(count(page, "<script") == 1);
  // nothing comes from elsewhere
  for (const char* outside : {" src=", " href=", "url(", "@import", "https://", "fetch("})
    CHECK(count(page, outside) == 0);
  CHECK(count(page, "http://") == count(page, "http://www.w3.org/2000/svg\""));
}

TEST_CASE("the page shows exponents of a run that looks at them", "[report_page]") {
  const Scratch scratch;
  auto task = small_masked();
  RunOptions options = reported(scratch / "run");
  options.callbacks.insert(options.callbacks.begin(), std::make_shared<train::ExponentReport>());
  train::run(task, options, header);
  const std::string page = page_in(scratch / "run");
  CHECK(page.find(read_bytes(scratch / "run/exponents.svg")) != std::string::npos);
  for (const char* part : {"<h2>Exponents", "step 1", "step 30", "f8e5m2"}) CHECK_THAT(page, Catch::Contains(part));
}

TEST_CASE("a run with a page is the run without", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  auto plain = small_masked(), watched = small_masked();
  train::run(plain, small_run(scratch / "plain"), header);
  train::run(watched, reported(scratch / "watched"), header);
  CHECK(differing(left_behind(scratch / "plain"), left_behind(scratch / "watched")).empty());
  CHECK(autograd::mode().observer == nullptr);
}

TEST_CASE("the page keeps up with the run, no more often than is wanted", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  std::vector<size_t> points;
  auto task = small_masked();
  RunOptions options = reported(scratch / "run");
  const auto look = [&](const Moment& now) {
    const std::string page = page_in(now.options.output_dir);
    CHECK(state_of(page) == "running");
    CHECK_THAT(page, Catch::Contains(std::to_string(now.state.step) + "<small> of 30"));
    CHECK_THAT(page, Catch::Contains("http-equiv=\"refresh\""));
    points.push_back(count(all_between(page, "data-name=\"loss\"", "/>").at(0), "L"));
  };
  options.callbacks.push_back(std::make_shared<OnLog<decltype(look)>>(look));
  train::run(task, options, header);
  CHECK(points == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(count(page_in(scratch / "run"), "http-equiv=\"refresh\"") == 0);

  options.output_dir = scratch / "rare";
  options.callbacks = {std::make_shared<ReportPage>(ReportPage::Options{.seconds_between = 1e9})};
  pages_written = 0;
  const data::FileCallHook before = data::set_file_call_hook(count_pages);
  train::run(task, options, header);
  data::set_file_call_hook(before);
  CHECK(pages_written == 3);  // as it begins, after the step that was watched, at the end
}

TEST_CASE("a run resumed goes on with the history of its page", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  auto whole = small_masked(), first = small_masked(), second = small_masked();
  train::run(whole, reported(scratch / "whole"), header);
  RunOptions options = reported(scratch / "part");
  volatile std::sig_atomic_t stop = 0;
  options.stop = &stop;
  const auto at_twelve = [&](const Moment& now) { stop = now.state.step == 12 ? SIGINT : 0; };
  options.callbacks.push_back(std::make_shared<OnLog<decltype(at_twelve)>>(at_twelve));
  train::run(first, options, header);
  const std::string stopped = page_in(scratch / "part");
  CHECK(state_of(stopped) == "stopped");
  CHECK_THAT(stopped, Catch::Contains("SIGINT stopped it; resumed it goes on after step 12"));
  stop = 0;
  options = reported(scratch / "part");
  options.resume = true;
  train::run(second, options, header);
  const std::string page = page_in(scratch / "part");
  CHECK(state_of(page) == "finished");
  CHECK_THAT(page, Catch::Contains("Step 15<small>"));
  std::vector<std::string> resumed = curves(page), expected = curves(page_in(scratch / "whole"));
  REQUIRE(resumed.size() == expected.size());
  CHECK(count(resumed.back(), "L") == count(expected.back(), "L"));  // the speeds of both parts
  resumed.pop_back(), expected.pop_back();
  CHECK(resumed == expected);

  // where the first part had no page, the second has its own speeds
  std::filesystem::remove(scratch / "part/times.jsonl");
  train::run(second, options, header);
  CHECK(state_of(page_in(scratch / "part")) == "finished");
}

TEST_CASE("the page of a run that throws says so, and nobody watches any longer", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  struct Throwing : ForwardingTask {
    using ForwardingTask::ForwardingTask;
    train::Forward forward(const data::Batch& batch) override {
      if (++calls == 8) throw std::runtime_error("no more");  // in the step that is watched
      return task.forward(batch);
    }
    int calls = 0;
  };
  for (bool anomaly : {false, true}) {
    auto task = small_masked();
    Throwing throwing(task);
    RunOptions options = reported(scratch / "run");
    options.overwrite = true;
    options.detect_anomaly = anomaly;
    CHECK_THROWS_WITH(train::run(throwing, options, header), "no more");
    options.callbacks.clear();
    CHECK(state_of(page_in(scratch / "run")) == "failed");
    CHECK_THAT(page_in(scratch / "run"), Catch::Contains("ended with an error after step 2"));
    CHECK(autograd::mode().observer == nullptr);
  }
}

TEST_CASE("the page waits for a step that no other callback traces", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  auto task = small_masked();
  RunOptions options = small_run(scratch / "run");
  options.detect_anomaly = true;  // watches from the beginning to the end
  options.callbacks = {std::make_shared<train::TraceReport>(scratch / "trace.json", 2, 5), eager()};
  train::run(task, options, header);
  CHECK_THAT(page_in(scratch / "run"), Catch::Contains("Step 6<small>"));
  CHECK(autograd::mode().observer == nullptr);
  CHECK_THAT(read_bytes(scratch / "trace.json"), Catch::Contains("step 5"));
}

TEST_CASE("a run without a directory has no page, and a short one watches its last step", "[report_page]") {
  const Scratch scratch;
  const ThreadScope one(1);
  auto task = small_masked();
  RunOptions options = reported("");
  options.max_steps = 2;
  options.schedule.warmup = 0;
  train::run(task, options, header);
  options.output_dir = scratch / "run";
  train::run(task, options, header);
  CHECK_THAT(page_in(scratch / "run"), Catch::Contains("Step 2<small>"));
}
