// An observer that reads the clock and the pools' counts, and the writer of what it saw.
#include "cinta/train/trace.h"

#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cinta/autograd/mode.h"
#include "cinta/core/context.h"
#include "cinta/data/atomic_file.h"

namespace cinta::train {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

/// Nanoseconds since the trace was made.
using Moment = int64_t;
constexpr Moment unfinished = -1;

enum class Kind { phase, forward, backward };
constexpr const char* category_of[] = {"phase", "forward", "backward"};

struct Slice {
  Kind kind;
  std::string name;
  Moment begin, end = unfinished;
  std::string module = {}, place = {};
  std::vector<std::string> inputs = {}, outputs = {};  ///< "f32[32,128]@cpu"
  int64_t bytes = 0;                                   ///< of inputs and outputs together
  int64_t saved_bytes = 0;                             ///< forward: of what is kept for backward
  uint64_t node = 0;                                   ///< on the tape, 0: not recorded
};

struct MemoryPoint {
  Moment at;
  Device device;
  std::array<int64_t, category_count> live;
};

constexpr int process = 0, thread = 1;

double microseconds(Moment moment) { return static_cast<double>(moment) / 1e3; }

Json event(const char* phase, const std::string& name, Moment at) {
  return {{"ph", phase}, {"name", name}, {"pid", process}, {"tid", thread}, {"ts", microseconds(at)}};
}

Json named(const char* what, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json json_of(const Slice& slice) {
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

}  // namespace

/// The slices under way are a stack: what ends is the last that began under its name. Those above it, whose op threw,
/// have no end and are not written.
class Trace::Recorder : public autograd::Observer {
 public:
  ~Recorder() override { stop(); }

  void start(const std::string& name) {
    require(!on_, "trace", Where(), "a trace that is on is not started again: ", name);
    on_ = true;
    open_.clear();
    outer_ = std::exchange(autograd::mode().observer, this);
    begin({.kind = Kind::phase, .name = name, .begin = now()});
  }
  void stop() {
    if (!std::exchange(on_, false)) return;
    if (autograd::mode().observer == this) autograd::mode().observer = outer_;
    if (!open_.empty()) slices_[open_.front()].end = now();
    outer_ = nullptr;
  }

  void before(const char* name, std::span<const Tensor* const> inputs) override {
    if (outer_) outer_->before(name, inputs);
    Slice slice{.kind = Kind::forward, .name = name, .begin = 0, .module = NameScope::path()};
    for (const Tensor* input : inputs)
      if (*input) add_tensor(slice.inputs, slice.bytes, *input);
    begin(std::move(slice));
  }
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override {
    if (Slice* slice = end(Kind::forward, name)) {
      slice->place = place_of(where);
      for (const Tensor& output : outputs) add_tensor(slice->outputs, slice->bytes, output);
      count_memory(slice->end);
    }
    if (outer_) outer_->forward(name, where, outputs);
  }
  void saved(const autograd::Node& node, const Tensor& tensor, const autograd::Hole* hole) override {
    const bool leaf = tensor.slot && tensor.slot->leaf;
    if (ended_ && !hole && !leaf) slices_[*ended_].saved_bytes += tensor.bytes();
    if (outer_) outer_->saved(node, tensor, hole);
  }
  void recorded(const autograd::Node& node) override {
    if (ended_) {
      slices_[*ended_].node = node.number;
      recorded_[node.number] = *ended_;
    }
    if (outer_) outer_->recorded(node);
  }
  void before_backward(const autograd::Node& node) override {
    if (outer_) outer_->before_backward(node);
    Slice slice{.kind = Kind::backward, .name = node.name(), .begin = 0, .place = place_of(node.where)};
    slice.node = node.number;
    if (const auto made = recorded_.find(node.number); made != recorded_.end())
      slice.module = slices_[made->second].module;
    begin(std::move(slice));
  }
  void backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    if (Slice* slice = end(Kind::backward, node.name())) {
      for (const Tensor& gradient : gradients)
        if (gradient) add_tensor(slice->outputs, slice->bytes, gradient);
      count_memory(slice->end);
    }
    if (outer_) outer_->backward(node, gradients);
  }
  void enter(const char* phase) override {
    if (outer_) outer_->enter(phase);
    begin({.kind = Kind::phase, .name = phase, .begin = 0});
  }
  void leave(const char* phase) override {
    if (Slice* slice = end(Kind::phase, phase)) count_memory(slice->end);
    if (outer_) outer_->leave(phase);
  }

  void write(Lines& lines) const {
    lines.add(named("process_name", "rank 0"));
    lines.add(named("thread_name", "training"));
    for (const Slice& slice : slices_)
      if (slice.end != unfinished) lines.add(json_of(slice));
    for (const Slice& slice : slices_) write_arrow(lines, slice);
    for (const MemoryPoint& point : memory_) {
      Json out = event("C", join("memory ", point.device), point.at);
      for (int i = 0; i < category_count; ++i)
        out["args"][std::string(name_of(static_cast<Category>(i)))] = point.live[static_cast<size_t>(i)];
      lines.add(out);
    }
  }

 private:
  Moment now() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - made_).count(); }

  void add_tensor(std::vector<std::string>& forms, int64_t& bytes, const Tensor& tensor) {
    forms.push_back(join(tensor));
    bytes += tensor.bytes();
    device_ = tensor.device();
  }

  void begin(Slice slice) {
    ended_.reset();
    open_.push_back(slices_.size());
    slices_.push_back(std::move(slice));
    slices_.back().begin = now();  // last, so that this bookkeeping is nobody's time
  }
  Slice* end(Kind kind, const char* name) {
    const Moment moment = now();
    ended_.reset();
    for (size_t i = open_.size(); i-- > 0;) {
      Slice& slice = slices_[open_[i]];
      if (slice.kind != kind || slice.name != name) continue;
      slice.end = moment;
      ended_ = open_[i];
      open_.resize(i);
      return &slice;
    }
    return nullptr;  // it began before the trace did
  }

  /// Notes the live bytes of the device that was worked on last, where they have changed.
  void count_memory(Moment at) {
    const auto live = memory_statistics(device_).live;
    const auto [last, first] = last_live_.try_emplace({device_.backend, device_.index});
    if (!first && last->second == live) return;
    last->second = live;
    memory_.push_back({at, device_, live});
  }

  /// From the forward slice of a node to this backward slice of it.
  void write_arrow(Lines& lines, const Slice& slice) const {
    if (slice.kind != Kind::backward || slice.end == unfinished) return;
    const auto from = recorded_.find(slice.node);
    if (from == recorded_.end()) return;
    for (const char* phase : {"s", "f"}) {
      Json out = event(phase, "gradient", *phase == 's' ? slices_[from->second].begin : slice.begin);
      out["cat"] = "tape";
      out["id"] = slice.node;
      if (*phase == 'f') out["bp"] = "e";
      lines.add(out);
    }
  }

  const Clock::time_point made_ = Clock::now();
  bool on_ = false;
  autograd::Observer* outer_ = nullptr;
  std::vector<Slice> slices_;
  std::vector<size_t> open_;                       ///< of slices_, the outermost first
  std::optional<size_t> ended_;                    ///< the slice that ended last, while no other has begun
  std::unordered_map<uint64_t, size_t> recorded_;  ///< node -> its forward slice
  std::vector<MemoryPoint> memory_;
  std::map<std::pair<int, int>, std::array<int64_t, category_count>> last_live_;  ///< by device
  Device device_ = cpu;
};

Trace::Trace() : recorder_(std::make_unique<Recorder>()) {}
Trace::~Trace() = default;
void Trace::start(const std::string& name) { recorder_->start(name); }
void Trace::stop() { recorder_->stop(); }

void Trace::write(const std::string& path, Where where) const {
  data::AtomicFile file(path, where);
  Lines lines(file);
  recorder_->write(lines);
  lines.finish();
  file.commit(where);
}

}  // namespace cinta::train
