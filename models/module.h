// Module: named parameters and children, nothing else. Every technique works on lists of parameters or on functions.
#pragma once
#include <string>
#include <vector>

#include "cinta/core/tensor.h"
#include "cinta/optim/parameter.h"

namespace cinta::models {

/// How a parameter starts. Values are Philox(seed, stream = the parameter's full name, element), so that sharded,
/// staged and single runs start equal.
struct Init {
  enum Kind { zeros, ones, normal, uniform } kind = zeros;
  double scale = 0;  ///< standard deviation, or the bound of the uniform distribution [-scale, scale)
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What an optimizer needs, names as paths from this module.
  std::vector<optim::Parameter> parameters() const;
  /// The tensors under the names that files use: a parameter that is fused in memory, as query, key and value are,
  /// appears as views of its parts.
  std::vector<NamedTensor> named_tensors() const;
  /// Number of elements of all parameters, those of a tied one once.
  int64_t parameter_count() const;

  /// Draws all parameters anew.
  void initialize(uint64_t seed);
  /// Training mode (dropout is on) or evaluation mode. Modules start in training mode.
  void train(bool on = true);
  bool training() const { return training_; }
  /// Moves all parameters, before an optimizer has taken them over. What is tied within this module stays tied,
  /// hooks go along, gradients do not; a parameter that lies there already stays as it is.
  virtual void to(Device device);
  /// Freezes (or frees) the parameters at `path` or below, all of them for an empty one; returns how many: 0 where
  /// there is none. Paths are those of parameters(), not the names in files: query, key and value are one parameter
  /// ("..self" freezes it, "..self.query" is no path). A tied parameter follows any of its paths in this module,
  /// under all of them.
  int set_trainable(std::string_view path, bool trainable);

 protected:
  Module() = default;

  /// A stretch of a fused parameter's first dimension and the name it has in files.
  struct Part {
    std::string name;
    int64_t rows;
  };
  /// Makes `member` a trainable parameter. `parts` names the pieces of a fused one, by rows.
  void add_parameter(Tensor& member, std::string name, const Shape& shape, Init init, Device device,
                     std::vector<Part> parts = {});
  /// `name` may be a dotted path.
  void add_child(std::string name, Module& child);
  /// Parameters below this module lie together in one optimizer unit.
  void mark_as_block() { block_ = true; }

 private:
  struct Entry {
    std::string name;
    Tensor* tensor;
    Init init;
    std::vector<Part> parts;
  };
  struct Child {
    std::string name;
    Module* module;
  };
  /// A parameter with the paths that it has, several where it is tied: the handles are copies of one.
  struct Tied {
    std::vector<std::string> paths;
    std::vector<Tensor*> handles;
  };
  std::vector<Tied> tied_parameters() const;
  /// Calls visit(path of the module with a trailing dot, block, module) for this module and all below.
  template <class Visit>
  void walk(const std::string& path, const std::string& block, Visit&& visit) const;

  std::vector<Entry> entries_;
  std::vector<Child> children_;
  bool training_ = true, block_ = false;
};

}  // namespace cinta::models
