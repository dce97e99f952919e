// Contexts and the scopes that choose them.
#include "cinta/core/context.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "cinta/core/allocator.h"
#include "cinta/core/storage.h"

namespace cinta {
namespace {
thread_local Context* current = nullptr;
thread_local Category category = Category::activations;

Context& process_context() {
  static Context& process = *new Context;  // never destroyed: tensors may outlive static objects
  return process;
}

/// The record of a thread that works in the process's context, on devices whose kernels have run when their call
/// returns: threads that share it are told of their own data alone.
thread_local std::array<Status, max_backends> own_status{};
}  // namespace

struct Context::PerDevice {
  Device device;
  std::shared_ptr<Pool> pool;
  Stream stream;
  Status* status = nullptr;
  ~PerDevice() {
    if (status) pool->release(status, sizeof(Status), Category::workspace);
  }
};

Context::~Context() {
  for (auto& kind : entries_)
    for (PerDevice* entry : kind) delete entry;
}

Context::PerDevice& Context::entry(Device device) {
  if (device.backend >= max_backends || device.index >= max_indices) return make_entry(device);  // which refuses it
  PerDevice* known = std::atomic_ref(entries_[device.backend][device.index]).load(std::memory_order_acquire);
  return known ? *known : make_entry(device);
}

Context::PerDevice& Context::make_entry(Device device) {
  require<DeviceError>(device.index < max_indices, "context", Where(), "at most ", max_indices,
                       " devices of a kind, given ", device);
  runtime_of(device);  // names the device when it is not built
  static std::mutex making;
  std::lock_guard lock(making);
  std::atomic_ref entry(entries_[device.backend][device.index]);
  if (!entry.load()) entry = new PerDevice{device, std::make_shared<Pool>(device), Stream{device}};
  return *entry.load();
}

const std::shared_ptr<Pool>& Context::pool(Device device) { return entry(device).pool; }
Stream Context::stream(Device device) const { return const_cast<Context*>(this)->entry(device).stream; }
void Context::set_stream(Stream stream) { entry(stream.device).stream = stream; }

bool Context::has_status_of_threads(Device device) const {
  return this == &process_context() && (device == cpu || device == reference);
}

Status* Context::status(Device device) {
  if (has_status_of_threads(device)) return &own_status[device.backend];
  PerDevice& at = entry(device);
  if (!at.status) {
    at.status = static_cast<Status*>(at.pool->allocate(sizeof(Status), Category::workspace));
    const Status fine{};
    if (device.backend != meta.backend) runtime_of(device).copy(at.stream, at.status, &fine, sizeof fine);
  }
  return at.status;
}

Status Context::take_report(Device device) {
  if (has_status_of_threads(device)) return std::exchange(own_status[device.backend], Status{});
  PerDevice& at = entry(device);
  Status found{};
  if (!at.status || device.backend == meta.backend) return found;
  runtime_of(device).copy(at.stream, &found, at.status, sizeof found);
  runtime_of(device).synchronize(at.stream);
  const Status fine{};
  if (found.kind != Status::fine) runtime_of(device).copy(at.stream, at.status, &fine, sizeof fine);
  return found;
}

void Context::check_status(Device device) {
  const Status found = take_report(device);
  if (found.kind == Status::fine) return;
  throw ValueError(join("[index] index ", found.value, " at position ", found.row, " is outside [0, ", found.limit,
                        ") on ", device, "; the step that read it must not be used"));
}

void Context::check_status_of(const char* op, Device device, Where where) {
  if (!runtime_of(device).host_accessible()) return;
  const Status found = take_report(device);
  require(found.kind == Status::fine, op, where, "index ", found.value, " at position ", found.row, " is outside [0, ",
          found.limit, ")");
}

void Context::check_copy(const char* what, Where where) const {
  require(!captures(), what, where,
          "a captured step copies nothing from or to the host, because a replay would repeat what was there: make "
          "tensors before it, write into them between replays (copy_(), Random::set_step(), Optimizer::prepare())");
}

Context::Flag& Context::kept(const std::shared_ptr<bool>& flag, bool needed) {
  Flag& kept = flags_[flag.get()];
  if (kept.flag.expired()) kept = {flag, needed, *flag, *flag};  // the first to come decides
  return kept;
}

bool Context::flags_are_right() const {
  return std::ranges::all_of(flags_, [](const auto& entry) {
    const auto flag = entry.second.flag.lock();
    return !flag || !entry.second.needed || *flag == entry.second.before;
  });
}

void Context::set_flags() const {
  for (const auto& [key, kept] : flags_)
    if (const auto flag = kept.flag.lock()) *flag = kept.after;
}

void Context::clear_flags() const {
  for (const auto& [key, kept] : flags_)
    if (const auto flag = kept.flag.lock(); flag && !kept.needed) *flag = false;
}

bool Context::may_use(const Storage& copy) {
  return !captures() || copy.is_slice() || copy.pool() == pool(copy.device()).get();
}

Context& context() { return current ? *current : process_context(); }

ContextScope::ContextScope(Context& inner) : outer_(current) { current = &inner; }
ContextScope::~ContextScope() { current = outer_; }

Category current_category() { return category; }
CategoryScope::CategoryScope(Category inner) : outer_(category) { category = inner; }
CategoryScope::~CategoryScope() { category = outer_; }

MemoryStatistics memory_statistics(Device device) { return context().pool(device)->statistics(); }

}  // namespace cinta
