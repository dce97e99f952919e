// An observer that reads the clock and the pools' counts.
#include "cinta/train/trace.h"

#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cinta/autograd/joined_observer.h"
#include "cinta/core/context.h"

namespace cinta::train {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = TraceSlice::Kind;

}  // namespace

/// The slices under way are a stack: what ends is the last that began under its name. Those above it, whose op threw,
/// have no end and are not written.
class Trace::Recorder : public autograd::JoinedObserver {
 public:
  ~Recorder() override { stop(); }

  void start(const std::string& name) {
    require(!on_, "trace", Where(), "a trace that is on is not started again: ", name);
    on_ = true;
    open_.clear();
    attach();
    begin({.kind = Kind::phase, .name = name, .begin = now()});
  }
  void stop() {
    if (!std::exchange(on_, false)) return;
    detach();
    if (!open_.empty()) slices_[open_.front()].end = now();
  }

  void before(const char* name, std::span<const Tensor* const> inputs) override {
    JoinedObserver::before(name, inputs);
    TraceSlice slice{.kind = Kind::forward, .name = name, .begin = 0, .module = NameScope::path()};
    for (const Tensor* input : inputs)
      if (*input) add_tensor(slice.inputs, slice.bytes, *input);
    begin(std::move(slice));
  }
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override {
    if (TraceSlice* slice = end(Kind::forward, name)) {
      slice->place = place_of(where);
      for (const Tensor& output : outputs) add_tensor(slice->outputs, slice->bytes, output);
      count_memory(slice->end);
    }
    JoinedObserver::forward(name, where, outputs);
  }
  void saved(const autograd::Node& node, const Tensor& tensor, const autograd::Hole* hole) override {
    const bool leaf = tensor.slot && tensor.slot->leaf;
    if (ended_ && !hole && !leaf) slices_[*ended_].saved_bytes += tensor.bytes();
    JoinedObserver::saved(node, tensor, hole);
  }
  void recorded(const autograd::Node& node) override {
    if (ended_) {
      slices_[*ended_].node = node.number;
      recorded_[node.number] = *ended_;
    }
    JoinedObserver::recorded(node);
  }
  void before_backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    JoinedObserver::before_backward(node, gradients);
    TraceSlice slice{.kind = Kind::backward, .name = node.name(), .begin = 0, .place = place_of(node.where)};
    slice.node = node.number;
    if (const auto made = recorded_.find(node.number); made != recorded_.end())
      slice.module = slices_[made->second].module;
    begin(std::move(slice));
  }
  void backward(const autograd::Node& node, std::span<const Tensor> gradients) override {
    if (TraceSlice* slice = end(Kind::backward, node.name())) {
      for (const Tensor& gradient : gradients)
        if (gradient) add_tensor(slice->outputs, slice->bytes, gradient);
      count_memory(slice->end);
    }
    JoinedObserver::backward(node, gradients);
  }
  void enter(const char* phase) override {
    JoinedObserver::enter(phase);
    begin({.kind = Kind::phase, .name = phase, .begin = 0});
  }
  void leave(const char* phase) override {
    if (TraceSlice* slice = end(Kind::phase, phase)) count_memory(slice->end);
    JoinedObserver::leave(phase);
  }

  const std::vector<TraceSlice>& slices() const { return slices_; }
  const std::vector<TraceMemory>& memory() const { return memory_; }

 private:
  int64_t now() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - made_).count(); }

  void add_tensor(std::vector<std::string>& forms, int64_t& bytes, const Tensor& tensor) {
    forms.push_back(join(tensor));
    bytes += tensor.bytes();
    device_ = tensor.device();
  }

  void begin(TraceSlice slice) {
    ended_.reset();
    open_.push_back(slices_.size());
    slices_.push_back(std::move(slice));
    slices_.back().begin = now();  // last, so that this bookkeeping is nobody's time
  }
  TraceSlice* end(Kind kind, const char* name) {
    const int64_t moment = now();
    ended_.reset();
    for (size_t i = open_.size(); i-- > 0;) {
      TraceSlice& slice = slices_[open_[i]];
      if (slice.kind != kind || slice.name != name) continue;
      slice.end = moment;
      ended_ = open_[i];
      open_.resize(i);
      return &slice;
    }
    return nullptr;  // it began before the trace did
  }

  /// Notes the live bytes of the device that was worked on last, where they have changed.
  void count_memory(int64_t at) {
    const auto live = memory_statistics(device_).live;
    const auto [last, first] = last_live_.try_emplace({device_.backend, device_.index});
    if (!first && last->second == live) return;
    last->second = live;
    memory_.push_back({at, device_, live});
  }

  const Clock::time_point made_ = Clock::now();
  bool on_ = false;
  std::vector<TraceSlice> slices_;
  std::vector<size_t> open_;                       ///< of slices_, the outermost first
  std::optional<size_t> ended_;                    ///< the slice that ended last, while no other has begun
  std::unordered_map<uint64_t, size_t> recorded_;  ///< node -> its forward slice
  std::vector<TraceMemory> memory_;
  std::map<std::pair<int, int>, std::array<int64_t, category_count>> last_live_;  ///< by device
  Device device_ = cpu;
};

Trace::Trace() : recorder_(std::make_shared<Recorder>()) {}
Trace::~Trace() = default;
void Trace::start(const std::string& name) { recorder_->start(name); }
void Trace::stop() { recorder_->stop(); }
const std::vector<TraceSlice>& Trace::slices() const { return recorder_->slices(); }
const std::vector<TraceMemory>& Trace::memory() const { return recorder_->memory(); }

}  // namespace cinta::train
