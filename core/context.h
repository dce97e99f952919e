// What belongs to a rank, never to the process: memory pools, current streams, the status that kernels report to,
// and what new memory is for. Ranks may be threads of one process; each thread works in one context.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "cinta/core/callback.h"
#include "cinta/core/error.h"
#include "cinta/core/memory.h"
#include "cinta/core/runtime.h"

namespace cinta {

class Pool;
class Storage;

/// Where a kernel writes down bad data it met (a label out of range); read by the host after the step.
struct Status {
  enum Kind : int64_t { fine = 0, index_out_of_range = 1 };
  int64_t kind, row, value, limit;
};

class Context {
 public:
  Context() = default;
  ~Context();
  /// The pool of a device, made at first use.
  const std::shared_ptr<Pool>& pool(Device device);
  Stream stream(Device device) const;
  void set_stream(Stream stream);
  /// The status record in the device's memory, made at first use. In the process's own context each thread has one for
  /// the CPU and for the reference.
  Status* status(Device device);
  /// Throws ValueError if a kernel reported bad data since the last call, and clears the report.
  void check_status(Device device);
  /// The same for an op that has just run, by name, where that costs no waiting: on devices whose memory is the host's.
  /// Others report at the host's next read.
  void check_status_of(const char* op, Device device, Where where);
  /// From now on what happens here is captured, to be replayed; `outside` is where that was asked for.
  void capture(Context& outside) { outside_ = &outside; }
  bool captures() const { return outside_; }
  /// Of a capture the context outside of it, and of any around it, whose memory outlives the captured step; else this.
  Context& lasting() { return outside_ ? outside_->lasting() : *this; }
  /// Throws ValueError where this context captures: a replay would repeat what the host gave or saw once.
  void check_copy(const char* what, Where where) const;
  /// False for a copy that was made before this context began to capture, whose making a replay would not repeat, and
  /// whose memory is not its own. A slice of a buffer has an owner who keeps it.
  bool may_use(const Storage& copy);
  /// What the host does with each replay, beside its rows: `check` before any of them has run, so that what it throws
  /// leaves all as it was, `action` after them. Nothing where this context does not capture.
  void repeat(const Callback<void()>& check, const Callback<void()>& action) {
    if (captures()) repeated_.push_back({check, action});
  }
  struct Repeated {
    Callback<void()> check, action;
  };
  const std::vector<Repeated>& repeated() const { return repeated_; }
  /// In a capture: what the step does next depends on this flag of the host, or it makes it `value`. Replays need the
  /// flag as the step found it, unless it set it before, and leave it as the step left it.
  void reads(const std::shared_ptr<bool>& flag) { kept(flag, true); }
  void sets(const std::shared_ptr<bool>& flag, bool value) { kept(flag, false).after = value; }
  /// True where all flags are as a replay needs them; the others leave them as a replay does, and as one does that
  /// broke off: what it makes anew is not there.
  bool flags_are_right() const;
  void set_flags() const;
  void clear_flags() const;

 private:
  struct Flag {
    std::weak_ptr<bool> flag;
    bool needed = false, before = false, after = false;
  };
  Flag& kept(const std::shared_ptr<bool>& flag, bool needed);
  bool has_status_of_threads(Device device) const;
  Status take_report(Device device);
  struct PerDevice;
  PerDevice& entry(Device device);
  PerDevice& make_entry(Device device);
  static constexpr int max_indices = 16;                                     ///< devices of one kind
  std::array<std::array<PerDevice*, max_indices>, max_backends> entries_{};  // threads may meet at an empty one
  Context* outside_ = nullptr;                                               ///< null: nothing is captured
  std::vector<Repeated> repeated_;
  std::map<const bool*, Flag> flags_;
};

/// The context of this thread: the process's own unless a ContextScope is alive.
Context& context();

class ContextScope {
 public:
  explicit ContextScope(Context& inner);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;

 private:
  Context* outer_;
};

/// What memory allocated on this thread is for (activations unless a scope says otherwise).
Category current_category();
class CategoryScope {
 public:
  explicit CategoryScope(Category inner);
  ~CategoryScope();
  CategoryScope(const CategoryScope&) = delete;

 private:
  Category outer_;
};

/// Counts of this rank's memory on `device`.
MemoryStatistics memory_statistics(Device device);

}  // namespace cinta
