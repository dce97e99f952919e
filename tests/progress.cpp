// The progress line: its text at every width, in place on a terminal, as plain lines elsewhere.
#include "cinta/train/progress.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace cinta::train;

namespace {

const Shown values[] = {{"loss", 2.34567}, {"masked accuracy", 0.5}};

/// Everything that waits in a descriptor which does not block.
std::string drained(int descriptor) {
  std::string out;
  char chunk[4096];
  for (ssize_t count; (count = ::read(descriptor, chunk, sizeof chunk)) > 0;) out.append(chunk, size_t(count));
  return out;
}

struct Pipe {
  int ends[2];
  Pipe() { REQUIRE(::pipe2(ends, O_NONBLOCK) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
};

struct Terminal {
  int outside = -1, inside = -1;
  explicit Terminal(unsigned short columns) {
    winsize size{24, columns, 0, 0};
    if (::openpty(&outside, &inside, nullptr, nullptr, &size) == 0)
      ::fcntl(outside, F_SETFL, O_NONBLOCK);
    else
      WARN("skipped: no pseudo-terminal; is /dev/pts mounted?");
  }
  bool absent() const { return outside < 0; }
  ~Terminal() {
    ::close(outside);
    ::close(inside);
  }
};

/// Sets or unsets a variable of the environment until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      old_ = old;
      was_set_ = true;
    }
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { was_set_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool was_set_ = false;
};

}  // namespace

TEST_CASE("progress: the line", "[progress]") {
  const ProgressState state{120, 5000, values, 24123, "tokens", 171.4};
  CHECK(progress_line(state, 0, false) ==
        "step 120/5000 2%  loss 2.346  masked accuracy 0.5  24.1k tokens/s  02:51 left");
  CHECK(progress_line(state, 100, false) ==
        "120/5000 |.........................| 2%  loss 2.346  masked accuracy 0.5  24.1k tokens/s  02:51 left");
  for (int width = 1; width < 200; ++width) CHECK(int(progress_line(state, width, false).size()) <= width);
  CHECK_THAT(progress_line(state, 80, false), Catch::Matches("120/5000 2%  loss .*"));

  const auto bar = [](int64_t step, int64_t total) {
    const auto line = progress_line({step, total, {}, -1, "", -1}, 200, false);
    return std::pair(std::ranges::count(line, '#'), std::ranges::count(line, '.'));
  };
  CHECK(bar(0, 10) == std::pair<long, long>{0, 40});
  CHECK(bar(5, 10) == std::pair<long, long>{20, 20});
  CHECK(bar(10, 10) == std::pair<long, long>{40, 0});
  CHECK(bar(12, 10) == std::pair<long, long>{40, 0});
  CHECK(bar(0, 0) == std::pair<long, long>{40, 0});
  CHECK(progress_line({99, 100, {}, -1, "", -1}, 0, false) == "step 99/100 99%");
  CHECK(progress_line({999, 1000, {}, -1, "", -1}, 0, false) == "step 999/1000 99%");
}

TEST_CASE("progress: counts and times", "[progress]") {
  const auto rate = [](double items) { return progress_line({1, 1, {}, items, "i", -1}, 0, false).substr(15); };
  CHECK(rate(0) == "0 i/s");
  CHECK(rate(0.25) == "0.25 i/s");
  CHECK(rate(999) == "999 i/s");
  CHECK(rate(999.7) == "1k i/s");
  CHECK(rate(1.5e6) == "1.5M i/s");
  CHECK(rate(2e15) == "2e+03T i/s");
  const auto left = [](double seconds) { return progress_line({1, 1, {}, -1, "", seconds}, 0, false).substr(15); };
  CHECK(left(0) == "00:00 left");
  CHECK(left(59.6) == "01:00 left");
  CHECK(left(3599) == "59:59 left");
  CHECK(left(3600) == "1:00:00 left");
  CHECK(left(360000) == "100:00:00 left");
}

TEST_CASE("progress: plain lines where there is no terminal", "[progress]") {
  const Pipe pipe;
  {
    Progress progress({.total_steps = 250, .plain_every = 100, .items = "tokens", .descriptor = pipe.ends[1]});
    for (int step = 1; step <= 250; ++step) progress.update(step, values, step * 10.0);
    progress.update(250, values, 2500);
    progress.message("saved");
  }
  const auto text = drained(pipe.ends[0]);
  INFO(text);
  CHECK(std::ranges::count(text, '\n') == 5);
  CHECK(text.starts_with("step 1/250 "));
  CHECK_THAT(text, Catch::Contains("\nstep 100/250 40%  loss 2.346") && Catch::Contains("\nstep 200/250 ") &&
                       Catch::Contains("\nstep 250/250 100%") && Catch::EndsWith("saved\n"));
  CHECK(text.find('\r') == text.npos);
  CHECK(text.find('\x1b') == text.npos);
}

TEST_CASE("progress: a slow beginning does not stay in the speed", "[progress]") {
  const Pipe pipe;
  {
    Progress progress({.total_steps = 1000, .plain_every = 10, .items = "steps", .descriptor = pipe.ends[1]});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int step = 1; step <= 30; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(step > 1 ? 1 : 0));
      progress.update(step, {}, step);
    }
  }
  const std::string text = drained(pipe.ends[0]), last = text.substr(text.rfind("step 30/"));
  INFO(text);  // steps of a millisecond or two, not of what the first took
  CHECK(std::stod(last.substr(last.find("%  ") + 3)) > 20);
}

TEST_CASE("progress: a bar on a terminal", "[progress]") {
  const Variable kind("TERM", "xterm");
  const bool no_color = GENERATE(false, true);
  const Variable colors("NO_COLOR", no_color ? "1" : nullptr);
  const Terminal terminal(100);
  if (terminal.absent()) return;
  {
    Progress progress({.total_steps = 100, .descriptor = terminal.inside});
    for (int step = 1; step <= 100; ++step) progress.update(step, values, step);
    progress.message("saved");
  }
  const auto text = drained(terminal.outside);
  INFO(text);
  CHECK(std::ranges::count(text, '\n') == 2);  // behind the message and at the end
  CHECK_THAT(text, Catch::StartsWith("\r\x1b[K1/100 |") && Catch::Contains("100/100 |") &&
                       Catch::Contains("\r\x1b[Ksaved\r\n100/100 "));
  CHECK((text.find("\x1b[32m") == text.npos) == no_color);
  CHECK(std::ranges::count(text, '|') < 60);  // of 202: most steps come too soon to be drawn
}

TEST_CASE("progress: a terminal without cursor gets plain lines, quiet shows nothing", "[progress]") {
  const Terminal terminal(80);
  if (terminal.absent()) return;
  {
    const Variable kind("TERM", "dumb");
    Progress progress({.total_steps = 1, .descriptor = terminal.inside});
    progress.update(1, values, 1);
  }
  CHECK_THAT(drained(terminal.outside), Catch::StartsWith("step 1/1 100%") && Catch::EndsWith("\r\n"));
  {
    const Variable kind("TERM", "xterm");
    Progress progress({.total_steps = 1, .quiet = true, .descriptor = terminal.inside});
    progress.update(1, values, 1);
    progress.message("saved");
  }
  CHECK(drained(terminal.outside).empty());
}
