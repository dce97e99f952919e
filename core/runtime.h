// What a machine HAS: memory, copies, streams, events. One small class per backend; what a machine can DO stands in
// backends/kernels. A backend from outside claims a name, installs a Runtime and its kernels (core/plugin.h loads it).
#pragma once
#include <cstdint>
#include <string_view>

#include "cinta/core/device.h"

namespace cinta {

/// An ordered queue of work of one device. The handle is the backend's own; null is the default stream.
struct Stream {
  Device device;
  void* handle = nullptr;
};

/// A point in a stream that another stream can wait for.
struct Event {
  Device device;
  void* handle = nullptr;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  /// Memory aligned to 64 bytes, or null when there is none left.
  virtual void* allocate(Device device, int64_t bytes) = 0;
  virtual void release(Device device, void* data, int64_t bytes) noexcept = 0;
  /// Copies bytes where `destination` or `source` is memory of this runtime and the other is this runtime's or the
  /// host's.
  virtual void copy(Stream stream, void* destination, const void* source, int64_t bytes) = 0;
  /// True iff the host may read and write this memory through its pointers.
  virtual bool host_accessible() const = 0;
  /// What a pool asks for at once, to cut large blocks from it; the more the better where memory that was never touched
  /// costs nothing. 0: blocks cannot be cut; large ones are given back as soon as they are released then.
  virtual int64_t segment_bytes() const { return 128 << 20; }
  /// From rehearse(true) to rehearse(false) kernels take the memory that they work in, and may compute a part of their
  /// results only (Rehearsal). The default is for kernels that need no memory of their own.
  virtual void rehearse(bool) {}

  /// The rest is for machines whose queues run beside the host; where work is done at once the defaults are right.
  virtual Stream create_stream(Device device) { return {device, nullptr}; }
  virtual void destroy_stream(Stream) noexcept {}
  virtual Event record(Stream stream) { return {stream.device, nullptr}; }
  virtual void wait(Stream, Event) {}
  virtual void destroy_event(Event) noexcept {}
  virtual void synchronize(Stream) {}
};

/// While alive, what runs on `device` is done for the memory that it takes, in little time: whole steps of a training
/// whose results nobody reads. The process does nothing else there meanwhile.
class Rehearsal {
 public:
  explicit Rehearsal(Device device);
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;

 private:
  Runtime& runtime_;
};

/// Puts `runtime` in the column of `device` under `name`. The runtime must live as long as the process.
struct RegisterRuntime {
  RegisterRuntime(Device device, std::string_view name, Runtime& runtime);
};

/// The column of the backend called `name`: the one it has, or the next free one. Throws DeviceError when the name is
/// empty, "host", another runtime's or has a colon, or when no column is left.
Device claim_backend(std::string_view name, Runtime& runtime);

/// The runtime of a device; throws DeviceError naming the device and what is built in.
Runtime& runtime_of(Device device);

}  // namespace cinta
