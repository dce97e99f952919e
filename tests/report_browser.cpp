// report.html in a browser: no script fails, nothing is wider than the page at phone and desk width, light and dark.
#include <sys/wait.h>
#include <map>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cinta/train/report_page.h"
#include "train_helpers.h"

using namespace cinta;
using namespace cinta::testing;
using nlohmann::json;

namespace {

/// What a shell prints; its exit code is appended as a line.
std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  std::array<char, 4096> chunk;
  for (size_t count; (count = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) out.append(chunk.data(), count);
  const int status = ::pclose(pipe);
  return out + "\nexit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

void replace(std::string& text, const std::string& part, const std::string& by) {
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += by.size()) text.replace(at, part.size(), by);
}

/// The page with a script that tells the page around it what a reader would notice.
std::string probed(std::string page) {
  replace(page, "<head>", R"page(<head><script>
const faults = [];
addEventListener("error", event => faults.push(event.message));
console.error = console.warn = (...words) => faults.push(words.join(" "));
</script>)page");
  replace(page, "</body>", R"page(<script>
addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement, chart = document.querySelector("svg[data-frame]");
  const box = chart.getBoundingClientRect(), timeline = document.getElementById("timeline");
  chart.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 9}));
  const reading = document.querySelector(".reading");
  const before = timeline.scrollWidth;
  document.querySelectorAll("button")[1].click();
  document.querySelector("[data-n]").dispatchEvent(new PointerEvent("pointerenter"));
  parent.postMessage({width: innerWidth, wider: root.scrollWidth - root.clientWidth, faults,
    dark: matchMedia("(prefers-color-scheme: dark)").matches, paper: getComputedStyle(document.body).backgroundColor,
    reading: reading ? reading.textContent : "", zoomed: timeline.scrollWidth / before,
    marked: document.querySelectorAll(".mark").length}, "*");
}, 20));
</script></body>)page");
  return page;
}

}  // namespace

TEST_CASE("a browser shows the report without a fault", "[report_browser]") {
  if (output_of("command -v chromium").find("exit 0") == std::string::npos) {
    WARN("chromium is not installed: the report is not looked at in a browser");
    return;
  }
  const Scratch scratch;
  auto task = small_masked();
  train::RunOptions options = small_run(scratch / "run");
  options.callbacks = {std::make_shared<train::ReportPage>()};
  train::run(task, options, {{"task", std::string("bert")}, {"data", std::string(300, 'x')}});
  write_bytes(scratch / "probed.html", probed(read_bytes(scratch / "run/report.html")));
  std::string frames = R"page(<!DOCTYPE html><html><body><script>
const told = [];
addEventListener("message", event => { told.push(event.data); document.body.dataset.told = JSON.stringify(told); });
</script>)page";
  for (const char* width : {"400", "1600"})
    for (const char* scheme : {"light", "dark"})
      frames += std::string("<iframe src=\"probed.html\" height=\"900\" width=\"") + width +
                "\" style=\"border:0;color-scheme:" + scheme + "\"></iframe>";
  write_bytes(scratch / "frames.html", frames + "</body></html>");
  std::string dom =
      output_of("timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=" + scratch.path() +
                "/profile --virtual-time-budget=4000 --dump-dom file://" + scratch.path() + "/frames.html 2>/dev/null");
  const size_t begin = dom.find("data-told=\"");
  INFO(dom.substr(0, 2000));
  REQUIRE(begin != dom.npos);
  dom = dom.substr(begin + 11, dom.find('"', begin + 11) - begin - 11);
  replace(dom, "&quot;", "\"");
  const json told = json::parse(dom);
  REQUIRE(told.size() == 4);
  std::map<std::pair<int, bool>, std::string> papers;
  for (const json& one : told) {
    INFO(one);
    CHECK(one.at("faults").empty());
    CHECK(one.at("wider") == 0);
    CHECK(one.at("reading").get<std::string>().starts_with("step "));
    CHECK(one.at("zoomed").get<double>() == Approx(2).epsilon(0.02));
    CHECK(one.at("marked") >= 2);
    papers[{one.at("width"), one.at("dark")}] = one.at("paper");
  }
  REQUIRE(papers.size() == 4);
  for (int width : {400, 1600}) CHECK(papers.at({width, false}) != papers.at({width, true}));
}
