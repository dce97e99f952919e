// Any function of a signature, as std::function holds it. <functional> alone would be a sixth of the time that
// <cinta/cinta.h> takes to compile.
#pragma once
#include <concepts>
#include <memory>

namespace cinta {

template <class Signature>
class Callback;

/// Copies share the function.
template <class Result, class... Args>
class Callback<Result(Args...)> {
 public:
  template <class F>
  requires(!std::same_as<F, Callback> && std::invocable<F&, Args...>) Callback(F function)
      : held_(std::make_shared<Holding<F>>(std::move(function))) {}
  Result operator()(Args... args) const { return held_->call(std::forward<Args>(args)...); }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual Result call(Args... args) = 0;
  };
  template <class F>
  struct Holding final : Held {
    explicit Holding(F f) : function(std::move(f)) {}
    Result call(Args... args) override { return function(std::forward<Args>(args)...); }
    F function;
  };
  std::shared_ptr<Held> held_;
};

}  // namespace cinta
