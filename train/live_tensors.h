// Which tensors are alive when a step needs the most memory, who made them, and what they are kept for.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "cinta/autograd/mode.h"
#include "cinta/core/memory.h"
#include "cinta/optim/parameter.h"

namespace cinta::train {

struct LiveTensor {
  std::string tensor;  ///< "f32[32,128]"
  std::string
      made_by;  ///< "linear", "linear backward", "before linear": it was there when the op ran; or a parameter's name
  std::string module;   ///< of that op; may be empty
  std::string kept_by;  ///< the first op that keeps it for its backward; empty: none does
  Category category;
  int64_t bytes;
};

/// The end of the op at which the most memory was in use, transient workspace inside ops not counted.
struct MemoryPeak {
  std::string op, module;  ///< that op, with the backward that it ran inside of; empty: no op was seen
  std::array<int64_t, category_count> live{};
  int64_t total = 0;
  std::vector<LiveTensor> tensors = {};  ///< those that ops saw, the largest first
};

/// Follows the tensors that ops take, make and save while it watches.
class LiveTensors : public autograd::Observer {
 public:
  /// Counts the memory of `device`; `parameters` have names.
  LiveTensors(Device device, const std::vector<optim::Parameter>& parameters);
  MemoryPeak peak() const;

  void before(const char* name, std::span<const Tensor* const> inputs) override;
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override;
  void saved(const autograd::Node& node, const Tensor& tensor, const autograd::Hole* hole) override;
  void recorded(const autograd::Node& node) override;
  void before_backward(const autograd::Node& node, std::span<const Tensor> gradients) override;
  void backward(const autograd::Node& node, std::span<const Tensor> gradients) override;

 private:
  struct Seen {
    LiveTensor tensor;
    int64_t born, died = -1;  ///< ends of ops, counted; -1: alive
  };
  using Key = std::weak_ptr<Storage>;
  Seen& see(const Tensor& tensor, const std::string& made_by, const std::string& module);
  /// The tensor, and the copy in a narrower type that was made with it.
  void see_with_shadow(const Tensor& tensor, Shadow::Of of, const std::string& made_by, const std::string& module);
  void count(const std::string& op, const std::string& module);

  Device device_;
  std::map<const Storage*, std::pair<std::string, Category>> known_;             ///< parameters and their copies
  std::vector<std::pair<std::shared_ptr<autograd::Slot>, std::string>> leaves_;  ///< their gradients come and go
  std::vector<Seen> seen_;
  std::map<Key, size_t, std::owner_less<>> alive_;  ///< by storage, into seen_
  std::map<uint64_t, std::string> modules_;         ///< of nodes
  std::vector<std::string> inside_;                 ///< the backwards that run
  int64_t ends_ = 0, peak_end_ = 0;
  MemoryPeak peak_;
};

}  // namespace cinta::train
