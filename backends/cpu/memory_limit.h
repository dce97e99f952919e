// How much memory this process may use: what the machine has, or what a container leaves of it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace cinta {

/// Bytes that this process may use: the machine's memory and what it swaps to, or what its control group (a container,
/// a service, a job of a cluster) may use of both. As much as can be counted where the system does not say.
int64_t memory_limit();
/// For tests: what memory_limit() says from now on; without a value, what the system says.
void pretend_memory_limit(std::optional<int64_t> bytes);

/// What the control groups of this process, of both versions, leave of a machine with so many bytes of memory and of
/// what it swaps to, by the files below `root`, which is / but for tests. See cgroups(7).
int64_t left_by_control_groups(const std::filesystem::path& root, int64_t memory, int64_t swap);

}  // namespace cinta
