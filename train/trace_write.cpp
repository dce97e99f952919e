// A timeline as the JSON that Chrome and Perfetto read.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "cinta/data/atomic_file.h"
#include "cinta/train/trace.h"

namespace cinta::train {
namespace {

using Json = nlohmann::ordered_json;
using Kind = TraceSlice::Kind;
constexpr const char* category_of[] = {"phase", "forward", "backward"};

constexpr int process = 0, thread = 1;

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

Json event(const char* phase, const std::string& name, int64_t at) {
  return {{"ph", phase}, {"name", name}, {"pid", process}, {"tid", thread}, {"ts", microseconds(at)}};
}

Json named(const char* what, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json json_of(const TraceSlice& slice) {
  Json out = event("X", slice.kind == Kind::backward ? slice.name + " backward" : slice.name, slice.begin);
  out["dur"] = microseconds(slice.end - slice.begin);
  out["cat"] = category_of[static_cast<int>(slice.kind)];
  if (slice.kind == Kind::phase) return out;
  Json& args = out["args"] = {{"bytes", slice.bytes}};
  if (slice.kind == Kind::forward) args["inputs"] = slice.inputs;
  args[slice.kind == Kind::forward ? "outputs" : "gradients"] = slice.outputs;
  if (slice.saved_bytes) args["saved_bytes"] = slice.saved_bytes;
  if (!slice.module.empty()) args["module"] = slice.module;
  if (!slice.place.empty()) args["at"] = slice.place;
  if (slice.node) args["node"] = slice.node;
  return out;
}

/// Lines of a JSON array, handed on in pieces of some size.
class Lines {
 public:
  explicit Lines(data::ByteSink& sink) : sink_(sink), text_(R"({"displayTimeUnit":"ms","traceEvents":[)") {}
  void add(const Json& event) {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    text_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text_.size() > size_t{1} << 20) hand_on();
  }
  void finish() {
    text_ += "\n]}\n";
    hand_on();
  }

 private:
  void hand_on() {
    sink_.write_text(text_);
    text_.clear();
  }
  data::ByteSink& sink_;
  std::string text_;
  bool first_ = true;
};

/// From the forward slice of each node to the backward slice of it.
void write_arrows(Lines& lines, const std::vector<TraceSlice>& slices) {
  std::unordered_map<uint64_t, const TraceSlice*> recorded;
  for (const TraceSlice& slice : slices)
    if (slice.kind == Kind::forward && slice.node) recorded[slice.node] = &slice;
  for (const TraceSlice& slice : slices) {
    if (slice.kind != Kind::backward || !slice.ended()) continue;
    const auto from = recorded.find(slice.node);
    if (from == recorded.end()) continue;
    for (const char* phase : {"s", "f"}) {
      Json out = event(phase, "gradient", *phase == 's' ? from->second->begin : slice.begin);
      out["cat"] = "tape";
      out["id"] = slice.node;
      if (*phase == 'f') out["bp"] = "e";
      lines.add(out);
    }
  }
}

}  // namespace

void Trace::write(const std::string& path, Where where) const {
  data::AtomicFile file(path, where);
  Lines lines(file);
  lines.add(named("process_name", "rank 0"));
  lines.add(named("thread_name", "training"));
  for (const TraceSlice& slice : slices())
    if (slice.ended()) lines.add(json_of(slice));
  write_arrows(lines, slices());
  for (const TraceMemory& point : memory()) {
    Json out = event("C", join("memory ", point.device), point.at);
    for (int i = 0; i < category_count; ++i)
      out["args"][std::string(name_of(static_cast<Category>(i)))] = point.live[static_cast<size_t>(i)];
    lines.add(out);
  }
  lines.finish();
  file.commit(where);
}

}  // namespace cinta::train
