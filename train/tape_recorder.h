// The observer that writes a tape down while ops are recorded on it.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cinta/autograd/mode.h"
#include "cinta/train/tape_graph.h"

namespace cinta::train {

class TapeRecorder : public autograd::Observer {
 public:
  /// `parameters` give their names to inputs.
  explicit TapeRecorder(const std::vector<optim::Parameter>& parameters);
  /// What was recorded so far, numbered from 1 in order. The recorder is empty then.
  std::vector<TapeNode> take();

  void before(const char* name, std::span<const Tensor* const> inputs) override;
  void forward(const char* name, Where where, std::span<const Tensor> outputs) override;
  void saved(const autograd::Node& node, const Tensor& tensor, const autograd::Hole* hole) override;
  void recorded(const autograd::Node& node) override;
  void backward(const autograd::Node&, std::span<const Tensor>) override {}

 private:
  TapeInput describe_input(const Tensor& tensor) const;

  std::map<const autograd::Slot*, std::string> names_;
  std::map<const void*, int> segments_;
  std::set<std::weak_ptr<Storage>, std::owner_less<>> held_;
  std::vector<TapeNode> open_;  ///< ops that run
  TapeNode now_;                ///< the op that ran last
  std::vector<TapeNode> tape_;
};

}  // namespace cinta::train
